package mcpapi_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"stoa/node/door/mcpapi"
)

// What the conformance kit calls by its names: tools, prompts, resources and tasks that no product has, on the dispatcher of the product.

type obj = map[string]any

type kit struct {
	mu    sync.Mutex
	tasks map[string]*kitTask
	made  int
}

// A kitTask settles by itself once its time has come.
type kitTask struct {
	mcpapi.Task
	settles time.Time
	then    mcpapi.Task
	answers obj // to its requests for input
	after   func(answers obj) mcpapi.Task
}

const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
const silence = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="

func text(s string) obj { return obj{"type": "text", "text": s} }

func said(s string) mcpapi.Result { return content(text(s)) }

func content(parts ...any) mcpapi.Result { return mcpapi.Result{Members: obj{"content": parts}} }

func embedded(uri, media, s string) obj {
	return obj{"type": "resource", "resource": obj{"uri": uri, "mimeType": media, "text": s}}
}

func asks(message, field, kind string) obj {
	return obj{"method": "elicitation/create", "params": obj{"mode": "form", "message": message, "requestedSchema": obj{"type": "object",
		"properties": obj{field: obj{"type": kind}}, "required": []string{field}}}}
}

func samples(s string, most int) obj {
	return obj{"method": "sampling/createMessage", "params": obj{"messages": []any{obj{"role": "user", "content": text(s)}}, "maxTokens": most}}
}

var roots = obj{"method": "roots/list", "params": obj{}}

func input(requests obj, state string) mcpapi.Result {
	m := obj{"resultType": "input_required", "content": []any{}, "inputRequests": requests}
	if state != "" {
		m["requestState"] = seal(state)
	}
	return mcpapi.Result{Members: m}
}

func seal(state string) string {
	mac := hmac.New(sha256.New, []byte("kit"))
	mac.Write([]byte(state))
	return state + "." + hex.EncodeToString(mac.Sum(nil))
}

// stateOf is what an earlier answer gave; an error for what it did not.
func stateOf(c *mcpapi.Call) (string, error) {
	raw := c.Param("requestState")
	if raw == nil {
		return "", nil
	}
	var sealed string
	_ = json.Unmarshal(raw, &sealed)
	state, _, _ := strings.Cut(sealed, ".")
	if sealed != seal(state) {
		return "", wrong("requestState is not one of this server")
	}
	return state, nil
}

func wrong(why string) error {
	return &mcpapi.Failure{Status: http.StatusBadRequest, Code: -32602, Text: why}
}

// answersOf are the inputs that a call brings, nil without any.
func answersOf(c *mcpapi.Call) (obj, error) {
	raw := c.Param("inputResponses")
	if raw == nil {
		return nil, nil
	}
	var answers obj
	if json.Unmarshal(raw, &answers) != nil || answers == nil {
		return nil, wrong("inputResponses must be an object")
	}
	return answers, nil
}

func field(answers obj, key, name string) (string, bool) {
	a, _ := answers[key].(obj)
	inner, _ := a["content"].(obj)
	s, ok := inner[name].(string)
	return s, ok
}

// rounds is a tool that asks for input once, and is done when every key is there.
func rounds(name string, requests obj, state string, done func(answers obj) string) mcpapi.Tool {
	return tool(name, func(c *mcpapi.Call) (mcpapi.Result, error) {
		answers, err := answersOf(c)
		if err != nil {
			return mcpapi.Result{}, err
		}
		was, err := stateOf(c)
		if err != nil {
			return mcpapi.Result{}, err
		}
		for key := range requests {
			if a, ok := answers[key].(obj); !ok || a == nil || was != state {
				return input(requests, state), nil
			}
		}
		return said(done(answers)), nil
	})
}

func tool(name string, call func(c *mcpapi.Call) (mcpapi.Result, error)) mcpapi.Tool {
	return mcpapi.Tool{Name: name, Title: name, Description: "Of the kit.", InputSchema: json.RawMessage(`{"type":"object"}`), Call: call}
}

func always(name string, r mcpapi.Result) mcpapi.Tool {
	return tool(name, func(*mcpapi.Call) (mcpapi.Result, error) { return mcpapi.Result{Members: maps.Clone(r.Members)}, nil })
}

const dialect2020 = `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",
"$defs":{"address":{"$anchor":"addressDef","type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"}}}},
"properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"},"contactMethod":{"type":"string","enum":["phone","email"]},
"phone":{"type":"string"},"email":{"type":"string"}},
"allOf":[{"anyOf":[{"required":["phone"]},{"required":["email"]}]}],
"if":{"properties":{"contactMethod":{"const":"phone"}},"required":["contactMethod"]},"then":{"required":["phone"]},"else":{"required":["email"]},
"additionalProperties":false}`

func (k *kit) tools() []mcpapi.Tool {
	name, confirm := asks("What is your name?", "name", "string"), asks("Please confirm", "ok", "boolean")
	schema := tool("json_schema_2020_12_tool", func(*mcpapi.Call) (mcpapi.Result, error) { return said("ok"), nil })
	schema.InputSchema = json.RawMessage(dialect2020)
	return append(k.taskTools(),
		always("test_simple_text", said("This is a simple text response for testing.")),
		always("test_image_content", content(obj{"type": "image", "data": pixel, "mimeType": "image/png"})),
		always("test_audio_content", content(obj{"type": "audio", "data": silence, "mimeType": "audio/wav"})),
		always("test_embedded_resource", content(embedded("test://embedded-resource", "text/plain", "This is an embedded resource content."))),
		always("test_multiple_content_types", content(text("Multiple content types test:"), obj{"type": "image", "data": pixel, "mimeType": "image/png"},
			embedded("test://mixed-content-resource", "application/json", `{"test":"data","value":123}`))),
		always("test_error_handling", mcpapi.Result{Members: obj{"isError": true, "content": []any{text("This tool intentionally returns an error for testing")}}}),
		always("test_logging_tool", said("silent")), always("greet_nobody", said("Hello")), schema,
		tool("test_tool_with_progress", func(c *mcpapi.Call) (mcpapi.Result, error) {
			for _, done := range []int{0, 50, 100} {
				c.Progress(done, 100, "")
			}
			return said("done"), nil
		}),
		tool("test_tool_with_logging", func(c *mcpapi.Call) (mcpapi.Result, error) {
			for _, step := range []string{"began", "runs", "ended"} {
				c.Notify("message", obj{"level": "info", "data": step})
			}
			return said("logged"), nil
		}),
		tool("test_streaming_elicitation", func(c *mcpapi.Call) (mcpapi.Result, error) {
			c.Progress(1, 1, "")
			return input(obj{"user_name": name}, ""), nil
		}),
		tool("test_missing_capability", func(c *mcpapi.Call) (mcpapi.Result, error) {
			if !c.Declares("sampling") {
				return mcpapi.Result{}, mcpapi.Needs(obj{"sampling": obj{}})
			}
			return said("ok"), nil
		}),
		rounds("test_input_required_result_elicitation", obj{"user_name": name}, "", func(a obj) string {
			s, _ := field(a, "user_name", "name")
			return "Hello, " + s + "!"
		}),
		rounds("test_input_required_result_sampling", obj{"capital_question": samples("What is the capital of France?", 100)}, "",
			func(a obj) string { return fmt.Sprint(a["capital_question"]) }),
		rounds("test_input_required_result_list_roots", obj{"client_roots": roots}, "", func(a obj) string { return fmt.Sprint(a["client_roots"]) }),
		rounds("test_input_required_result_request_state", obj{"confirm": confirm}, "asked", func(obj) string { return "state-ok" }),
		rounds("test_input_required_result_tampered_state", obj{"confirm": confirm}, "asked", func(obj) string { return "state-ok" }),
		rounds("test_input_required_result_multiple_inputs",
			obj{"user_name": name, "greeting": samples("Generate a greeting", 50), "client_roots": roots}, "asked", func(obj) string { return "all" }),
		tool("test_input_required_result_multi_round", func(c *mcpapi.Call) (mcpapi.Result, error) {
			switch state, err := stateOf(c); {
			case err != nil:
				return mcpapi.Result{}, err
			case state == "":
				return input(obj{"step1": asks("Step 1: What is your name?", "name", "string")}, "one"), nil
			case state == "one":
				return input(obj{"step2": asks("Step 2: What is your favorite color?", "color", "string")}, "two"), nil
			}
			return said("done"), nil
		}),
		tool("test_input_required_result_capabilities", func(c *mcpapi.Call) (mcpapi.Result, error) {
			requests := obj{}
			for capability, request := range map[string]obj{"sampling": samples("Hello", 10), "elicitation": name, "roots": roots} {
				if c.Declares(capability) {
					requests[capability] = request
				}
			}
			return input(requests, ""), nil
		}),
	)
}

// begin makes a task that settles after a time.
func (k *kit) begin(after time.Duration, then mcpapi.Task) *kitTask {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.made++
	now := time.Now()
	t := &kitTask{Task: mcpapi.Task{ID: "kit-" + strconv.Itoa(k.made), Status: "working", CreatedAt: now, UpdatedAt: now, TTL: 600_000, PollInterval: 100},
		settles: now.Add(after), then: then}
	k.tasks[t.ID] = t
	return t
}

func completed(s string) mcpapi.Task {
	return mcpapi.Task{Status: "completed", Result: obj{"content": []any{text(s)}}}
}

const tasksExtension = "io.modelcontextprotocol/tasks"

func started(t *kitTask) (mcpapi.Result, error) { return mcpapi.Result{Members: t.Begun()}, nil }

// ofTasks is a tool that only clients with tasks may call; without is what others get, nil for an error.
func (k *kit) ofTasks(
	name string, without func(c *mcpapi.Call) (mcpapi.Result, error), call func(c *mcpapi.Call, args obj) (mcpapi.Result, error),
) mcpapi.Tool {
	return tool(name, func(c *mcpapi.Call) (mcpapi.Result, error) {
		if !c.Declares("extensions", tasksExtension) {
			if without != nil {
				return without(c)
			}
			return mcpapi.Result{}, mcpapi.Needs(obj{"extensions": obj{tasksExtension: obj{}}})
		}
		args := obj{}
		_ = json.Unmarshal(c.Args, &args)
		return call(c, args)
	})
}

// asking is a task that waits for input.
func (k *kit) asking(requests obj, after func(answers obj) mcpapi.Task) *kitTask {
	t := k.begin(time.Hour, mcpapi.Task{})
	k.mu.Lock()
	defer k.mu.Unlock()
	t.Status, t.InputRequests, t.answers, t.after = "input_required", requests, obj{}, after
	return t
}

func (k *kit) taskTools() []mcpapi.Tool {
	confirm := asks("Please confirm", "confirm", "boolean")
	return []mcpapi.Tool{
		tool("greet", func(c *mcpapi.Call) (mcpapi.Result, error) {
			var args struct{ Name string }
			_ = json.Unmarshal(c.Args, &args)
			return said("Hello, " + args.Name + "!"), nil
		}),
		k.ofTasks("slow_compute", func(*mcpapi.Call) (mcpapi.Result, error) { return said("computed"), nil }, func(_ *mcpapi.Call, args obj) (mcpapi.Result, error) {
			seconds, _ := args["seconds"].(float64)
			return started(k.begin(time.Duration(seconds)*time.Second, completed("computed")))
		}),
		k.ofTasks("failing_job", nil, func(*mcpapi.Call, obj) (mcpapi.Result, error) {
			t := completed("it failed")
			t.Result["isError"] = true
			return started(k.begin(time.Second, t))
		}),
		k.ofTasks("protocol_error_job", nil, func(*mcpapi.Call, obj) (mcpapi.Result, error) {
			return started(k.begin(0, mcpapi.Task{Status: "failed", Error: obj{"code": -32603, "message": "it broke"}}))
		}),
		k.ofTasks("confirm_delete", nil, func(*mcpapi.Call, obj) (mcpapi.Result, error) {
			return started(k.asking(obj{"confirm": confirm}, func(obj) mcpapi.Task { return completed("deleted") }))
		}),
		k.ofTasks("multi_input", nil, func(*mcpapi.Call, obj) (mcpapi.Result, error) {
			return started(k.asking(obj{"first": confirm, "second": confirm}, func(obj) mcpapi.Task { return completed("both") }))
		}),
		k.ofTasks("test_tool_with_task", nil, func(c *mcpapi.Call, _ obj) (mcpapi.Result, error) {
			answers, err := answersOf(c)
			if err != nil {
				return mcpapi.Result{}, err
			}
			name, ok := field(answers, "user_name", "name")
			if !ok {
				return input(obj{"user_name": asks("What is your name?", "name", "string")}, "asked"), nil
			}
			return started(k.begin(0, completed("Hello, "+name)))
		}),
	}
}

// settle gives a task what its time has brought. The caller holds the mutex.
func (t *kitTask) settle() {
	if t.Status == "working" && !time.Now().Before(t.settles) {
		t.Status, t.Result, t.Error, t.UpdatedAt = t.then.Status, t.then.Result, t.then.Error, time.Now()
	}
}

func (k *kit) find(id string) (*kitTask, error) {
	if t := k.tasks[id]; t != nil {
		t.settle()
		return t, nil
	}
	return nil, mcpapi.NoTask()
}

func (k *kit) Get(_ *mcpapi.Call, id string) (mcpapi.Task, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	t, err := k.find(id)
	if err != nil {
		return mcpapi.Task{}, err
	}
	now := t.Task
	now.InputRequests = maps.Clone(t.InputRequests)
	return now, nil
}

func (k *kit) Update(_ *mcpapi.Call, id string, responses []byte) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	t, err := k.find(id)
	if err != nil || t.Status != "input_required" {
		return err
	}
	var answers obj
	if err := json.Unmarshal(responses, &answers); err != nil {
		return wrong("inputResponses must be an object")
	}
	for key, answer := range answers {
		if t.InputRequests[key] != nil {
			t.answers[key] = answer
			delete(t.InputRequests, key)
		}
	}
	if len(t.InputRequests) == 0 {
		done := t.after(t.answers)
		t.Status, t.Result, t.InputRequests, t.UpdatedAt = done.Status, done.Result, nil, time.Now()
	}
	return nil
}

func (k *kit) Cancel(_ *mcpapi.Call, id string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	t, err := k.find(id)
	if err == nil && slices.Contains([]string{"working", "input_required"}, t.Status) {
		t.Status, t.InputRequests, t.UpdatedAt = "cancelled", nil, time.Now()
	}
	return err
}

func (k *kit) resources() []mcpapi.Resource {
	is := func(uri, media string, part func(uri string, args map[string]string) obj) mcpapi.Resource {
		return mcpapi.Resource{URI: uri, Name: strings.TrimPrefix(uri, "test://"), Description: "Of the kit.", Media: media,
			Read: func(c *mcpapi.Call, args map[string]string) (mcpapi.Contents, error) {
				p := part(c.URI, args)
				p["uri"], p["mimeType"] = c.URI, media
				return mcpapi.Contents{Parts: []any{p}, Open: true}, nil
			}}
	}
	return []mcpapi.Resource{
		is("test://static-text", "text/plain", func(string, map[string]string) obj {
			return obj{"text": "This is the content of the static text resource."}
		}),
		is("test://static-binary", "image/png", func(string, map[string]string) obj { return obj{"blob": pixel} }),
		is("test://watched-resource", "text/plain", func(string, map[string]string) obj { return obj{"text": "still"} }),
		is("test://template/{id}/data", "application/json", func(_ string, args map[string]string) obj {
			return obj{"text": fmt.Sprintf(`{"id":%q,"templateTest":true,"data":"Data for ID: %s"}`, args["id"], args["id"])}
		}),
	}
}

func (k *kit) prompts() []mcpapi.Prompt {
	message := func(part any) obj { return obj{"role": "user", "content": part} }
	arg := func(name string) mcpapi.Argument {
		return mcpapi.Argument{Name: name, Description: "Of the kit.", Required: true}
	}
	is := func(name string, get func(args map[string]string) []any, args ...mcpapi.Argument) mcpapi.Prompt {
		return mcpapi.Prompt{Name: name, Description: "Of the kit.", Arguments: args, Get: func(_ *mcpapi.Call, args map[string]string) (map[string]any, error) {
			return obj{"messages": get(args)}, nil
		}}
	}
	asking := is("test_input_required_result_prompt", nil)
	asking.Get = func(c *mcpapi.Call, _ map[string]string) (map[string]any, error) {
		answers, err := answersOf(c)
		if err != nil {
			return nil, err
		}
		context, ok := field(answers, "user_context", "context")
		if !ok {
			return obj{"resultType": "input_required", "inputRequests": obj{"user_context": asks("What context should the prompt use?", "context", "string")}}, nil
		}
		return obj{"messages": []any{message(text("Context: " + context))}}, nil
	}
	return []mcpapi.Prompt{
		asking,
		is("test_simple_prompt", func(map[string]string) []any { return []any{message(text("This is a simple prompt for testing."))} }),
		is("test_prompt_with_arguments", func(a map[string]string) []any {
			return []any{message(text(fmt.Sprintf("Prompt with arguments: arg1='%s', arg2='%s'", a["arg1"], a["arg2"])))}
		}, arg("arg1"), arg("arg2")),
		is("test_prompt_with_embedded_resource", func(a map[string]string) []any {
			return []any{message(embedded(a["resourceUri"], "text/plain", "Embedded resource content for testing.")),
				message(text("Please process the embedded resource above."))}
		}, arg("resourceUri")),
		is("test_prompt_with_image", func(map[string]string) []any {
			return []any{message(obj{"type": "image", "data": pixel, "mimeType": "image/png"}), message(text("Please analyze the image above."))}
		}),
	}
}
