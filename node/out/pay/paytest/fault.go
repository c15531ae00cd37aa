package paytest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
)

// A Fault is how one request to the vendor goes wrong. The zero value is none.
type Fault struct {
	Status     int    // answered instead of doing anything; 0 to do it
	Code       string // error code in the body; SERVER_ERROR when empty
	RetryAfter int    // seconds, in the answer; 0 for no such field
	Cut        bool   // the connection is cut before anything is done
	Lost       bool   // it is done, and the connection is cut before the answer
	Garbage    bool   // it is done, and the answer is a proxy's page with status 200
}

// Faults of the vendor that clients must survive.
var (
	TooMany     = Fault{Status: http.StatusTooManyRequests, Code: "BAD_REQUEST_ERROR", RetryAfter: 7}
	InFlight    = Fault{Status: http.StatusConflict, Code: "BAD_REQUEST_ERROR"}
	ServerError = Fault{Status: http.StatusInternalServerError}
	Unavailable = Fault{Status: http.StatusServiceUnavailable, Code: "BAD_REQUEST_ERROR"} // a 503 that says bad request
	Cut         = Fault{Cut: true}
	Lost        = Fault{Lost: true}
	Garbage     = Fault{Garbage: true}
)

// Faults are all of them.
var Faults = []Fault{TooMany, InFlight, ServerError, Unavailable, Cut, Lost, Garbage}

// SetFault makes f choose how each request goes wrong, until the next SetFault; nil for never. It is
// not called by two requests at once.
func (s *Razorpay) SetFault(f func(*http.Request) Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

// FailNext makes the next requests go wrong, one after the other.
func (s *Razorpay) FailNext(faults ...Fault) {
	s.SetFault(func(*http.Request) (f Fault) {
		if len(faults) > 0 {
			f, faults = faults[0], faults[1:]
		}
		return f
	})
}

func (s *Razorpay) nextFault(r *http.Request) Fault {
	if s.fault == nil {
		return Fault{}
	}
	return s.fault(r)
}

// before reports whether the request ends here.
func (f Fault) before(w http.ResponseWriter) bool {
	if f.Cut {
		panic(http.ErrAbortHandler)
	}
	if f.Status == 0 {
		return false
	}
	if f.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(f.RetryAfter))
	}
	code := f.Code
	if code == "" {
		code = "SERVER_ERROR"
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(f.Status)
	json.NewEncoder(w).Encode(errorBody(code, "We are facing some trouble completing your request at the moment. Please try again shortly."))
	return true
}

// after returns the writer for the answer, and what is done at the end.
func (f Fault) after(w http.ResponseWriter) (http.ResponseWriter, func()) {
	switch {
	case f.Lost:
		return httptest.NewRecorder(), func() { panic(http.ErrAbortHandler) }
	case f.Garbage:
		return httptest.NewRecorder(), func() { w.Write([]byte("<!doctype html><title>502</title>")) }
	}
	return w, func() {}
}
