package dashboard

import "charm.land/bubbles/v2/key"

// keyMap is every key of the view, with the words that help shows.
type keyMap struct {
	tab, back, jump, up, down, pageUp, pageDown, first, last    key.Binding
	open, close, filter, sortLeft, sortRight, turn, pause, help key.Binding
	quit, suspend                                               key.Binding
}

var keys = keyMap{
	tab:       key.NewBinding(key.WithKeys("tab"), key.WithHelp("tab", "next view")),
	back:      key.NewBinding(key.WithKeys("shift+tab"), key.WithHelp("shift+tab", "view before")),
	jump:      key.NewBinding(key.WithKeys("1", "2", "3", "4"), key.WithHelp("1-4", "view")),
	up:        key.NewBinding(key.WithKeys("up", "k"), key.WithHelp("up/k", "up")),
	down:      key.NewBinding(key.WithKeys("down", "j"), key.WithHelp("down/j", "down")),
	pageUp:    key.NewBinding(key.WithKeys("pgup", "ctrl+b"), key.WithHelp("pgup", "page up")),
	pageDown:  key.NewBinding(key.WithKeys("pgdown", "ctrl+f"), key.WithHelp("pgdn", "page down")),
	first:     key.NewBinding(key.WithKeys("home", "g"), key.WithHelp("home/g", "first")),
	last:      key.NewBinding(key.WithKeys("end", "G"), key.WithHelp("end/G", "last")),
	open:      key.NewBinding(key.WithKeys("enter"), key.WithHelp("enter", "source")),
	close:     key.NewBinding(key.WithKeys("esc"), key.WithHelp("esc", "back, or drop the filter")),
	filter:    key.NewBinding(key.WithKeys("/"), key.WithHelp("/", "filter")),
	sortLeft:  key.NewBinding(key.WithKeys("left", "<", ","), key.WithHelp("left/<", "sort by the column to the left")),
	sortRight: key.NewBinding(key.WithKeys("right", ">", "."), key.WithHelp("right/>", "sort by the column to the right")),
	turn:      key.NewBinding(key.WithKeys("r"), key.WithHelp("r", "turn the order")),
	pause:     key.NewBinding(key.WithKeys("p", "space"), key.WithHelp("p", "pause")),
	help:      key.NewBinding(key.WithKeys("?", "h"), key.WithHelp("?", "help")),
	quit:      key.NewBinding(key.WithKeys("q", "ctrl+c"), key.WithHelp("q", "quit")),
	suspend:   key.NewBinding(key.WithKeys("ctrl+z"), key.WithHelp("ctrl+z", "suspend")),
}

// hint is a key as the bottom of the screen names it.
type hint struct{ key, does string }

// hints are the keys of a view, the most useful first: those that fit are shown.
func hints(v view) []hint {
	switch v {
	case viewSources, viewAccuracy:
		return []hint{{"?", "help"}, {"q", "quit"}, {"/", "filter"}, {"enter", "source"}, {"left/right", "sort"}, {"r", "turn"},
			{"tab", "view"}, {"p", "pause"}}
	case viewDetail, viewHelp:
		return []hint{{"esc", "back"}, {"q", "quit"}, {"up/down", "scroll"}, {"p", "pause"}}
	default:
		return []hint{{"?", "help"}, {"q", "quit"}, {"tab", "view"}, {"/", "filter sources"}, {"up/down", "scroll"}, {"p", "pause"}}
	}
}
