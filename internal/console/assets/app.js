const app = document.getElementById("app");
const answer = await fetch("v1/health");
app.textContent = JSON.stringify(await answer.json());
