package schedule_test

import (
	"fmt"
	"time"

	"stoa/protocol/schedule"
)

// A person is met on Wednesdays from ten to noon, an hour at a time; one meeting is agreed on.
func ExampleRules_Slots() {
	zone, _ := time.LoadLocation("Asia/Kolkata")
	r := schedule.Rules{TimeZone: "Asia/Kolkata", Durations: []int{60}}
	r.Weekly[time.Wednesday] = []schedule.Window{{10 * 60, 12 * 60}}
	day := time.Date(2026, 11, 25, 0, 0, 0, 0, zone)
	ten := day.Add(10 * time.Hour)
	slots, err := r.Slots(day, day.AddDate(0, 0, 1), time.Hour, day.AddDate(0, 0, -1), schedule.Taken{Meetings: []schedule.Interval{{ten, ten.Add(time.Hour)}}})
	for _, s := range slots {
		fmt.Println(s.Start.In(zone).Format("Mon 15:04"))
	}
	fmt.Println(err)
	// Output:
	// Wed 11:00
	// <nil>
}
