// Adds a button to the field of a place: it asks the browser for the position, writes it into the field to a thousandth of a
// degree and sends the form. Nothing is asked for before it is pressed, or kept. Without it the reader writes a place.
"use strict";
{
	const texts = JSON.parse(document.currentScript.dataset.words || "{}"), tr = text => texts[text] ?? text;
	const field = document.getElementById("f-near");
	const button = document.createElement("button"), says = document.createElement("p");
	button.type = "button";
	button.className = "quiet";
	button.textContent = tr("Near me");
	says.className = "wrong";
	says.setAttribute("role", "status");
	button.onclick = () => {
		button.disabled = true;
		says.textContent = "";
		navigator.geolocation.getCurrentPosition(({ coords }) => {
			button.disabled = false;
			field.value = coords.latitude.toFixed(3) + "," + coords.longitude.toFixed(3);
			field.form.requestSubmit();
		}, () => {
			button.disabled = false;
			says.textContent = tr("The browser gave no position. Write a place instead.");
		}, { maximumAge: 60000, timeout: 20000 });
	};
	if (field && navigator.geolocation) field.after(button, says);
}
