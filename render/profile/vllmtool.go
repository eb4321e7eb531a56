package profile

import "github.com/kvscout/kvscout/render/pyval"

// vllmTools validates tools and tool_choice (ChatCompletionRequest.check_tool_usage) and makes the tools of the
// template: nil if there are none.
func vllmTools(d *pyval.Dict, model ModelConfig) (*pyval.List, error) {
	raw, _ := d.Get("tools")
	var tools *pyval.List
	if !isNone(raw) {
		list, ok := raw.(*pyval.List)
		if !ok || len(list.Items) == 0 {
			return nil, refused(ReasonTools, "tools must be a list with at least one tool")
		}
		tools = &pyval.List{}
		for i, item := range list.Items {
			tool, ok := vllmTool(item)
			if !ok {
				return nil, refused(ReasonTools, "tool %d is not as the engine wants it", i)
			}
			tools.Items = append(tools.Items, tool)
		}
	}
	choice, given := d.Get("tool_choice")
	if !given && tools != nil {
		choice = "auto"
	}
	if err := vllmToolChoice(choice, tools); err != nil {
		return nil, err
	}
	none := isNone(choice) || choice == pyval.Value("none")
	if !none && !model.ToolParser {
		return nil, refused(ReasonTools, "tool_choice needs --enable-auto-tool-choice and --tool-call-parser")
	}
	if choice == pyval.Value("none") && model.ExcludeToolsWhenNone {
		return nil, nil
	}
	return tools, nil
}

func vllmToolChoice(choice pyval.Value, tools *pyval.List) error {
	if isNone(choice) || choice == pyval.Value("none") {
		return nil
	}
	if tools == nil {
		return refused(ReasonTools, "tool_choice without tools")
	}
	if choice == pyval.Value("auto") || choice == pyval.Value("required") {
		return nil
	}
	named, ok := choice.(*pyval.Dict)
	if !ok {
		return refused(ReasonTools, "tool_choice")
	}
	f, _ := named.Get("function")
	function, ok := f.(*pyval.Dict)
	if !ok || stringField(function, "name") == "" {
		return refused(ReasonTools, "tool_choice without the name of a function")
	}
	if kind, ok := named.Get("type"); ok && kind != pyval.Value("function") {
		return refused(ReasonTools, "tool_choice of a type that is not function")
	}
	for _, item := range tools.Items {
		of, _ := item.(*pyval.Dict).Get("function")
		if stringField(of.(*pyval.Dict), "name") == stringField(function, "name") {
			return nil
		}
	}
	return refused(ReasonTools, "tool_choice names no tool")
}

// vllmTool is ChatCompletionToolsParam.model_dump: type and function; of the function name, description and
// parameters, null if they are absent, then strict and defer_loading if they are set.
func vllmTool(v pyval.Value) (*pyval.Dict, bool) {
	tool, ok := v.(*pyval.Dict)
	if !ok {
		return nil, false
	}
	if kind, given := tool.Get("type"); given && kind != pyval.Value("function") {
		return nil, false
	}
	f, _ := tool.Get("function")
	function, ok := f.(*pyval.Dict)
	if !ok || check(function, toolFields) != nil || check(tool, toolFlags) != nil {
		return nil, false
	}
	name, named := function.Get("name")
	if !named {
		return nil, false
	}
	made := pyval.NewDict("name", name)
	for _, field := range []string{"description", "parameters"} {
		value, given := function.Get(field)
		if !given {
			value = pyval.None{}
		}
		made.Set(field, value)
	}
	late, _ := tool.Get("defer_loading")
	for _, field := range []string{"strict", "defer_loading"} {
		value, _ := function.Get(field)
		if isNone(value) && field == "defer_loading" {
			value = late
		}
		if !isNone(value) {
			on, _ := toBool(value)
			made.Set(field, on)
		}
	}
	out := pyval.NewDict("type", "function", "function", made)
	if !isNone(late) {
		on, _ := toBool(late)
		out.Set("defer_loading", on)
	}
	return out, true
}

var (
	toolFields = map[string]rule{
		"name": aString, "description": optional(aString), "parameters": optional(aDict), "strict": optional(aBool),
		"defer_loading": optional(aBool),
	}
	toolFlags = map[string]rule{"defer_loading": optional(aBool)}
)
