fn main() -> std::process::ExitCode {
    peers::main(None)
}
