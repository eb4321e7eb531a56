package dashboard

import (
	"time"

	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
)

// view is what the screen shows below its title.
type view uint8

const (
	viewOverview view = iota
	viewSources
	viewCalls
	viewAccuracy
	tabCount
	viewDetail = iota - 1
	viewHelp
)

var tabNames = [tabCount]string{"Overview", "Sources", "Calls", "Accuracy"}

// Messages of the feed and the clock.
type (
	// answerMsg is an answer of the server.
	answerMsg struct {
		stats *kvscoutv1.Stats
		at    time.Time
	}
	// lostMsg says that the stream ended or could not be begun, and when the next attempt will be.
	lostMsg struct {
		err       error
		at, again time.Time
	}
	// tickMsg is the time, once a second.
	tickMsg time.Time
	// detailMsg is what else the server tells of a source.
	detailMsg struct {
		of     sourceKey
		detail Detail
		err    error
	}
)

// Model is the state of the view. It changes by Update only.
type Model struct {
	opts          Options
	width, height int
	now           time.Time

	last  *sample // the newest
	shown *sample // last, or an older one while paused
	lost  *lostMsg

	view, under view // under is what help or detail lie over
	paused      bool
	sources     table
	accuracy    table
	filter      filter
	input       textinput.Model
	typing      bool
	scroll      int // first line shown of a view without a table

	of       sourceKey // source of the detail
	detail   *detailMsg
	askedAt  time.Time // when its detail was asked for last
	quitting bool
}

// NewModel is a view without any answer yet.
func NewModel(opts Options, now time.Time) Model {
	input := textinput.New()
	input.Prompt = "/"
	input.CharLimit = 200
	m := Model{opts: opts.withDefaults(), width: 80, height: 24, now: now, input: input}
	m.sources = table{columns: sourceColumns(), sort: 2}
	m.accuracy = table{columns: accuracyColumns(), sort: 2}
	return m
}

// Init starts the clock.
func (m Model) Init() tea.Cmd { return tick() }

func tick() tea.Cmd {
	return tea.Tick(time.Second, func(t time.Time) tea.Msg { return tickMsg(t) })
}

// Update is what becomes of the view by a message.
func (m Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var cmd tea.Cmd
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case answerMsg:
		m.take(msg)
		cmd = m.ask()
	case lostMsg:
		m.lost, m.now = &msg, msg.at
	case tickMsg:
		m.now, cmd = time.Time(msg), tick()
	case detailMsg:
		if msg.of == m.of {
			m.detail = &msg
		}
	case tea.KeyPressMsg:
		cmd = m.press(msg)
	default:
		if m.typing { // the blinking of the cursor, pastes
			m.input, cmd = m.input.Update(msg)
			m.filter = parseFilter(m.input.Value())
			m.fill()
		}
	}
	m.settle()
	return m, cmd
}

// take has an answer of the server.
func (m *Model) take(msg answerMsg) {
	m.last = next(m.last, msg.stats, msg.at)
	m.lost, m.now = nil, msg.at
	if !m.paused {
		m.show()
	}
}

// show shows the newest answer.
func (m *Model) show() {
	m.shown = m.last
	m.fill()
}

func (m *Model) fill() {
	if m.shown == nil {
		return
	}
	m.sources.fill(m.shown, m.filter.takes)
	m.accuracy.fill(m.shown, func(s *source) bool { return s.stats.GetAccuracy() != nil && m.filter.takes(s) })
}

// settle keeps what is scrolled within what there is.
func (m *Model) settle() {
	if t := m.table(); t != nil {
		t.see(m.bodyHeight() - 1)
		return
	}
	m.scroll = max(0, min(m.scroll, len(m.body())-m.bodyHeight()))
}

// table is that of the view, nil without one.
func (m *Model) table() *table {
	switch m.view {
	case viewSources:
		return &m.sources
	case viewAccuracy:
		return &m.accuracy
	default:
		return nil
	}
}

// found is the source of the detail in the answer shown, nil if it is gone.
func (m *Model) found() *source {
	if m.shown == nil {
		return nil
	}
	for i := range m.shown.sources {
		if m.shown.sources[i].sourceKey == m.of {
			return &m.shown.sources[i]
		}
	}
	return nil
}

// askEvery is how often the detail is asked for while it is looked at: it costs the server more than the counters.
const askEvery = 5 * time.Second

// ask asks for the detail that is looked at, if it is time.
func (m *Model) ask() tea.Cmd {
	if m.view != viewDetail || m.opts.Detail == nil || m.paused || m.now.Sub(m.askedAt) < askEvery {
		return nil
	}
	m.askedAt = m.now
	of, fetch := m.of, m.opts.Detail
	return func() tea.Msg {
		d, err := fetch(of.worker, of.rank)
		return detailMsg{of, d, err}
	}
}
