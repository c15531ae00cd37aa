package a2aapi_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/a2a"
	"stoa/protocol/must"
)

// A kit is what the checks of the conformance kits ask: an agent of a node that serves everybody, with the token of another profile.
type kit struct {
	h      *nodetest.House
	bearer []string
}

// call calls a method with the token; one of 0.3 without a version.
func (k kit) call(t *testing.T, method, params string) nodetest.A2AAnswer {
	t.Helper()
	return plain(k.h.On(t), "/a2a/asha", method, params, k.bearer...)
}

// fails calls a method, which gives a code.
func (k kit) fails(t *testing.T, code int, method, params string) {
	t.Helper()
	a := k.call(t, method, params)
	got, _ := codeOf(a)
	require.Equal(t, code, got, "%s", a.Raw)
}

// raw sends a body as it is.
func (k kit) raw(t *testing.T, code int, body string) {
	t.Helper()
	a := must.JSON[nodetest.A2AAnswer](k.h.On(t).Ask("POST", "/a2a/asha", body, k.bearer...).Body.Bytes())(t)
	got, _ := codeOf(a)
	require.Equal(t, code, got, "%s", body)
}

// task03 is a new task by 0.3.
func (k kit) task03(t *testing.T, id string) (task struct {
	ID, Kind, ContextID string
	Status              struct{ State string }
	History             []json.RawMessage
}) {
	t.Helper()
	a := k.call(t, "message/send", said03(t.Name()+id, "Hello", ""))
	require.NoError(t, json.Unmarshal(a.Result, &task), "%s", a.Raw)
	require.Equal(t, "task", task.Kind)
	return task
}

func (k kit) card(t *testing.T) (card map[string]any) {
	t.Helper()
	k.h.On(t).Ask("GET", "/a2a/asha/agent-card.json", "").Is(200).Into(&card)
	return card
}

func inOf(id string) string { return fmt.Sprintf(`{"id":%q}`, id) }

// checks03 are the mandatory checks of the kit for 0.3, by its names.
var checks03 = map[string]func(*testing.T, kit){
	"authentication/auth_compliance_v030/security_scheme_structure_compliance": func(t *testing.T, k kit) { schemes03(t, k) },
	"authentication/auth_enforcement/authentication_scheme_consistency":        func(t *testing.T, k kit) { schemes03(t, k) },
	"security/agent_card_security/security_scheme_consistency":                 func(t *testing.T, k kit) { schemes03(t, k) },
	"authentication/auth_enforcement/authentication_required_when_declared": func(t *testing.T, k kit) {
		for _, method := range []string{"message/send", "tasks/get", "tasks/cancel"} {
			params := map[bool]string{true: said03("x", "Hello", ""), false: inOf("t-1")}[method == "message/send"]
			a := plain(k.h.On(t), "/a2a/asha", method, params)
			require.Equal(t, 401, a.Status)
			require.NotEmpty(t, a.Header.Get("WWW-Authenticate"))
		}
	},
	"authentication/auth_enforcement/invalid_credentials_rejected":    func(t *testing.T, k kit) { wrongToken(t, k) },
	"security/in_task_authentication/invalid_authentication_handling": func(t *testing.T, k kit) { wrongToken(t, k) },
	"security/in_task_authentication/in_task_authentication_workflow": func(t *testing.T, k kit) { asked03(t, k, "w") },
	"security/in_task_authentication/auth_state_transitions":          func(t *testing.T, k kit) { asked03(t, k, "s") },
	"jsonrpc/json_rpc_compliance/rejects_invalid_json_rpc_requests[0]": func(t *testing.T, k kit) {
		k.raw(t, -32600, `{"jsonrpc":"aaa","id":1,"method":"message/send"}`)
	},
	"jsonrpc/json_rpc_compliance/rejects_invalid_json_rpc_requests[2]": func(t *testing.T, k kit) {
		k.raw(t, -32601, `{"jsonrpc":"2.0","id":1,"method":"message/sendX"}`)
	},
	"jsonrpc/json_rpc_compliance/rejects_invalid_json_rpc_requests[4]": func(t *testing.T, k kit) {
		k.raw(t, -32602, `{"jsonrpc":"2.0","id":1,"method":"message/send","params":{}}`)
	},
	"jsonrpc/json_rpc_compliance/rejects_unknown_method": func(t *testing.T, k kit) { k.fails(t, -32601, "unknown/method", `{}`) },
	"jsonrpc/json_rpc_compliance/rejects_invalid_params": func(t *testing.T, k kit) {
		k.fails(t, -32602, "message/send", `{"message":"x"}`)
	},
	"quality/error_validation_enhanced/invalid_method_error_validation": func(t *testing.T, k kit) { k.fails(t, -32601, "message/dance", `{}`) },
	"jsonrpc/protocol_violations/invalid_jsonrpc_version": func(t *testing.T, k kit) {
		k.raw(t, -32600, `{"jsonrpc":"1.0","id":1,"method":"tasks/get"}`)
	},
	"jsonrpc/protocol_violations/duplicate_request_ids": func(t *testing.T, k kit) {
		require.NotEqual(t, k.task03(t, "d-1").ID, k.task03(t, "d-2").ID)
	},
	"protocol/agent_card/mandatory_fields_present":                  func(t *testing.T, k kit) { fields03(t, k) },
	"protocol/agent_card/mandatory_field_types":                     func(t *testing.T, k kit) { fields03(t, k) },
	"security/agent_card_security/public_agent_card_access_control": func(t *testing.T, k kit) { fields03(t, k) },
	"security/agent_card_security/sensitive_information_protection": func(t *testing.T, k kit) {
		text := k.h.On(t).Ask("GET", "/a2a/asha/agent-card.json", "").Body.String()
		for _, secret := range []string{"password", "private_key", "secret", strings.TrimPrefix(k.bearer[1], "Bearer ")} {
			require.NotContains(t, strings.ToLower(text), secret)
		}
	},
	"jsonrpc/a2a_error_codes/push_notification_not_supported_error_32003": func(t *testing.T, k kit) { // of an operation; a message has them
		k.fails(t, -32003, "message/send", `{"configuration":{"pushNotificationConfig":{"url":"https://a.example/"}},`+
			`"message":{"kind":"message","messageId":"p","role":"user","parts":[{"kind":"data","data":{"operation":"read_board"}}]}}`)
	},
	"jsonrpc/a2a_error_codes/unsupported_operation_error_32004": func(t *testing.T, k kit) {
		task := k.task03(t, "u-1")
		require.Contains(t, string(k.call(t, "tasks/cancel", inOf(task.ID)).Result), `"canceled"`)
		k.fails(t, -32004, "message/send", said03("u-2", "More", fmt.Sprintf(`,"taskId":%q`, task.ID)))
	},
	"jsonrpc/a2a_error_codes/content_type_not_supported_error_32005": func(t *testing.T, k kit) {
		k.fails(t, -32005, "message/send", `{"message":{"kind":"message","messageId":"c","role":"user","parts":[{"kind":"file","file":{"bytes":"aGk="}}]}}`)
	},
	"protocol/a2a_v030_new_methods/authenticated_extended_card_method_exists": func(t *testing.T, k kit) {
		require.Contains(t, string(k.call(t, "agent/getAuthenticatedExtendedCard", `{}`).Result), `"supportsAuthenticatedExtendedCard":true`)
	},
	"protocol/a2a_v030_new_methods/authenticated_extended_card_without_auth": func(t *testing.T, k kit) {
		require.Equal(t, 401, plain(k.h.On(t), "/a2a/asha", "agent/getAuthenticatedExtendedCard", `{}`).Status)
	},
	"protocol/a2a_v030_new_methods/core_method_mapping_compliance":             func(t *testing.T, k kit) { methods03(t, k, "a") },
	"protocol/a2a_v030_new_methods/transport_specific_method_naming":           func(t *testing.T, k kit) { methods03(t, k, "b") },
	"protocol/a2a_v030_transport_compliance/transport_compliance_validation":   func(t *testing.T, k kit) { fields03(t, k) },
	"protocol/a2a_v030_transport_compliance/required_method_availability":      func(t *testing.T, k kit) { methods03(t, k, "c") },
	"protocol/a2a_v030_transport_compliance/transport_specific_features":       func(t *testing.T, k kit) { k.raw(t, -32600, `[]`) },
	"protocol/a2a_v030_transport_compliance/multi_transport_method_mapping":    func(t *testing.T, k kit) { equal03(t, k, "d") },
	"protocol/a2a_v030_transport_compliance/comprehensive_a2a_v030_compliance": func(t *testing.T, k kit) { fields03(t, k); methods03(t, k, "e") },
	"protocol/message_send_method/message_send_valid_text": func(t *testing.T, k kit) {
		require.Equal(t, "submitted", k.task03(t, "v").Status.State)
	},
	"protocol/message_send_method/message_send_invalid_params": func(t *testing.T, k kit) {
		k.fails(t, -32602, "message/send", `{"message":{"kind":"message"}}`)
	},
	"protocol/message_send_method/message_send_continue_task": func(t *testing.T, k kit) { asked03(t, k, "c") },
	"protocol/tasks_cancel_method/tasks_cancel_nonexistent": func(t *testing.T, k kit) {
		k.fails(t, -32001, "tasks/cancel", inOf("t-1"))
	},
	"protocol/tasks_get_method/tasks_get_nonexistent": func(t *testing.T, k kit) {
		k.fails(t, -32001, "tasks/get", inOf("t-1"))
	},
	"protocol/tasks_get_method/tasks_get_valid":                              func(t *testing.T, k kit) { equal03(t, k, "g") },
	"protocol/tasks_cancel_method/tasks_cancel_valid":                        func(t *testing.T, k kit) { methods03(t, k, "f") },
	"protocol/state_transitions/task_history_length":                         func(t *testing.T, k kit) { history03(t, k, "h") },
	"protocol/tasks_get_method/tasks_get_with_history_length":                func(t *testing.T, k kit) { history03(t, k, "i") },
	"transport/multi_transport_equivalence/message_sending_equivalence":      func(t *testing.T, k kit) { equal03(t, k, "j") },
	"transport/multi_transport_equivalence/task_retrieval_equivalence":       func(t *testing.T, k kit) { equal03(t, k, "k") },
	"transport/multi_transport_equivalence/agent_card_access_equivalence":    func(t *testing.T, k kit) { cards03(t, k) },
	"transport/multi_transport_equivalence/error_handling_equivalence":       func(t *testing.T, k kit) { errors03(t, k) },
	"transport/multi_transport_equivalence/concurrent_operation_equivalence": func(t *testing.T, k kit) { concurrent03(t, k) },
}

// open03 are the mandatory checks of that kit that no test here is, and why.
var open03 = map[string]string{
	"jsonrpc/a2a_error_codes/invalid_agent_response_error_32006":                            "an answer is checked when it comes",
	"jsonrpc/a2a_error_codes_enhanced/push_notification_not_supported_error_32003_enhanced": "as without _enhanced, also in its words",
	"jsonrpc/a2a_error_codes_enhanced/unsupported_operation_error_32004_enhanced":           "as without _enhanced, also in its words",
	"jsonrpc/a2a_error_codes_enhanced/content_type_not_supported_error_32005_enhanced":      "as without _enhanced, also in its words",
	"jsonrpc/a2a_error_codes_enhanced/invalid_agent_response_error_32006_enhanced":          "as without _enhanced",
	"transport/multi_transport_equivalence/performance_equivalence":                         "measures time; BenchmarkA2ABacklog does",
}

// schemes03: each scheme of the card has the form of OpenAPI, and each that is required is there.
func schemes03(t *testing.T, k kit) {
	t.Helper()
	card := k.card(t)
	schemes := card["securitySchemes"].(map[string]any)
	for name, s := range schemes {
		switch s := s.(map[string]any); s["type"] {
		case "apiKey":
			require.Equal(t, "header", s["in"], name)
			require.NotEmpty(t, s["name"], name)
		case "http":
			require.NotEmpty(t, s["scheme"], name)
		default:
			t.Errorf("%s has the type %v", name, s["type"])
		}
	}
	require.NotEmpty(t, card["security"])
	for _, need := range card["security"].([]any) {
		for name := range need.(map[string]any) {
			require.Contains(t, schemes, name)
		}
	}
}

func wrongToken(t *testing.T, k kit) {
	t.Helper()
	require.Equal(t, 401, plain(k.h.On(t), "/a2a/asha", "message/send", said03("x", "Hello", ""), "Authorization", "Bearer invalid").Status)
}

// asked03: a task asks, and goes on with the caller's answer.
func asked03(t *testing.T, k kit, id string) {
	t.Helper()
	task := k.task03(t, id)
	answerAs(k.h.On(t), task.ContextID, "Of which wood?", protocol.AsQuestion)
	require.Contains(t, string(k.call(t, "tasks/get", inOf(task.ID)).Result), `"state":"input-required"`)
	on := k.call(t, "message/send", said03(t.Name()+id+"-2", "Oak", fmt.Sprintf(`,"taskId":%q`, task.ID)))
	require.Contains(t, string(on.Result), `"state":"working"`)
	require.Contains(t, string(on.Result), task.ID)
}

func fields03(t *testing.T, k kit) {
	t.Helper()
	card := k.card(t)
	for _, name := range []string{"name", "description", "url", "version", "protocolVersion", "preferredTransport"} {
		require.IsType(t, "", card[name], name)
	}
	for _, name := range []string{"skills", "defaultInputModes", "defaultOutputModes"} {
		require.NotEmpty(t, card[name].([]any), name)
	}
	require.IsType(t, map[string]any{}, card["capabilities"])
}

// methods03: the methods that every agent has.
func methods03(t *testing.T, k kit, id string) {
	t.Helper()
	task := k.task03(t, id)
	require.Contains(t, string(k.call(t, "tasks/get", inOf(task.ID)).Result), `"submitted"`)
	require.Contains(t, string(k.call(t, "tasks/cancel", inOf(task.ID)).Result), `"canceled"`)
	k.fails(t, -32004, "tasks/resubscribe", inOf(task.ID)) // of what is over
}

func history03(t *testing.T, k kit, id string) {
	t.Helper()
	task := k.task03(t, id)
	k.call(t, "message/send", said03(t.Name()+id+"-2", "And?", fmt.Sprintf(`,"taskId":%q`, task.ID)))
	for length, want := range []int{0, 1, 2, 2} {
		a := k.call(t, "tasks/get", fmt.Sprintf(`{"id":%q,"historyLength":%d}`, task.ID, length))
		require.Equal(t, want, strings.Count(string(a.Result), `"kind":"message"`), "%s", a.Raw)
	}
}

// equal03: a task of one binding is the same in the other.
func equal03(t *testing.T, k kit, id string) {
	t.Helper()
	task := k.task03(t, id)
	var rest a2a.Task
	k.h.On(t).Ask("GET", "/a2a/asha/tasks/"+task.ID, "", k.bearer...).Is(200).Into(&rest)
	require.Equal(t, []string{task.ID, task.ContextID}, []string{rest.ID, rest.ContextID})
	var sent a2a.SendResult
	k.h.On(t).Ask("POST", "/a2a/asha/message:send", said(t.Name()+id+"-2", hi, fmt.Sprintf(`,"taskId":%q`, task.ID)), k.bearer...).Is(200).Into(&sent)
	require.Equal(t, task.ID, sent.Task.ID)
	require.Contains(t, string(k.call(t, "tasks/get", inOf(task.ID)).Result), "Jaipur")
}

func cards03(t *testing.T, k kit) {
	t.Helper()
	rest := k.h.On(t).Ask("GET", "/a2a/asha/extendedAgentCard", "", k.bearer...).Is(200).Body.Bytes()
	require.JSONEq(t, string(k.call(t, "GetExtendedAgentCard", `{}`).Result), string(rest))
}

func errors03(t *testing.T, k kit) {
	t.Helper()
	require.Contains(t, k.h.On(t).Ask("GET", "/a2a/asha/tasks/t-1", "", k.bearer...).Is(404).Body.String(), `"reason":"TASK_NOT_FOUND"`)
	k.fails(t, -32001, "tasks/get", inOf("t-1"))
}

func concurrent03(t *testing.T, k kit) {
	t.Helper()
	var group sync.WaitGroup
	ids := make([]string, 8)
	for i := range ids {
		group.Go(func() { ids[i] = k.task03(t, fmt.Sprint("con-", i)).ID })
	}
	group.Wait()
	for _, id := range ids {
		require.Contains(t, string(k.call(t, "tasks/get", inOf(id)).Result), id)
	}
}

// TestA2A_Kits: what the conformance kits of A2A check, by their names.
func TestA2A_Kits(t *testing.T) {
	t.Parallel()
	h := nodetest.Served(t, served("any"), func(c *node.Config) { c.OpenThreads, c.NetworkThreads, c.Unanswered, c.A2AWait = 1000, 1000, 100, 0 })
	h.PutOpen("asha", nil)
	h.Hosted("vikram")
	k := kit{h, []string{"Authorization", "Bearer " + h.TokenOf("vikram", "test")}}
	for version, checks := range map[string]map[string]func(*testing.T, kit){"0.3": checks03, "1.0": checks1} {
		for name, check := range checks {
			t.Run(version+"/"+name, func(t *testing.T) {
				check(t, k)
			})
		}
	}
	require.Len(t, checks03, 52-len(open03), "those that the kit has")
	has := regexp.MustCompile(`func (Test\w+)\(`)
	tests := map[string]bool{}
	for _, file := range must.Get(filepath.Glob("*_test.go"))(t) {
		for _, m := range has.FindAllStringSubmatch(string(must.Get(os.ReadFile(file))(t)), -1) {
			tests[m[1]] = true
		}
	}
	for name, test := range whole1 {
		require.True(t, tests[test], "%s: there is no %s", name, test)
	}
	t.Logf("1.0: %d checks here, %d in tests of their own, %d open", len(checks1), len(whole1), len(open1))
}
