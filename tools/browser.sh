#!/usr/bin/env bash
# Prints the path of a Chromium for the tests of a browser's calls; installs Debian's where there is none, as root.
# usage: browser.sh
set -euo pipefail

find_browser() {
  local name
  for name in chromium chromium-browser google-chrome google-chrome-stable; do
    command -v "$name" && return
  done
  return 1
}

find_browser && exit
sudo=()
[ "$(id -u)" -eq 0 ] || sudo=(sudo -n)
if command -v apt-get >/dev/null; then
  {
    "${sudo[@]}" apt-get update -qq
    DEBIAN_FRONTEND=noninteractive "${sudo[@]}" apt-get install -qq -y --no-install-recommends chromium
  } >&2 || true
fi
find_browser && exit
echo "browser.sh: no Chromium, and it cannot be installed: install one, or set KVSCOUT_BROWSER to it" >&2
exit 1
