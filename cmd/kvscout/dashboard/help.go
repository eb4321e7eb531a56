package dashboard

import (
	"strings"

	"charm.land/bubbles/v2/key"
)

// helpLines lists the keys and what the words of the views mean.
func helpLines(w int) []string {
	out := []string{strong.in("Keys")}
	for _, k := range []key.Binding{
		keys.jump, keys.tab, keys.back, keys.up, keys.down, keys.pageUp, keys.pageDown, keys.first, keys.last, keys.open,
		keys.close, keys.filter, keys.sortLeft, keys.sortRight, keys.turn, keys.pause, keys.help, keys.suspend, keys.quit,
	} {
		out = append(out, "  "+fit(k.Help().Key, 10, false)+" "+k.Help().Desc)
	}
	out = append(out, "", strong.in("Filter"))
	out = append(out, helpText(w, `Each word must be found in a worker's id, model, state, engine, bound or flag; !word must not. A field
may be named: state:gap model:qwen worker:10.0.0. bound:history flag:flagged.`)...)
	out = append(out, "", strong.in("Words"))
	for _, t := range [][2]string{
		{"STATE", "live; connecting; replaying (missing batches are fetched); gap (batches are lost for good); stale (silent for too long, not credited); unknown (nothing was ever heard)"},
		{"AGE", "time since the last batch came"},
		{"LAG", "from the arrival of the last batch to its being visible to Score"},
		{"DEVICE..", "blocks held now, by tier"},
		{"STORE/S", "events a second that store blocks; REMOVE/S those that remove some"},
		{"GAPS", "holes in the sequence that could not be filled"},
		{"REJECT", "what was not applied; enter shows the reasons"},
		{"EQUAL", "share of the recent outcomes that the prediction met to the token"},
		{"FLAGGED", "so few recent outcomes were equal that the source's numbers are not to be trusted"},
		{"ANSWERS", "exact; upper (the engine may reuse less), lower (it may hold more), estimate; and why"},
		{"latency", "in the server, from a request's being read to its answer's being ready"},
	} {
		for i, line := range wrap(t[1], w-14) {
			label := ""
			if i == 0 {
				label = t[0]
			}
			out = append(out, "  "+fit(label, 10, false)+" "+line)
		}
	}
	return out
}

func helpText(w int, text string) []string {
	var out []string
	for _, l := range wrap(strings.ReplaceAll(text, "\n", " "), w-4) {
		out = append(out, "  "+l)
	}
	return out
}
