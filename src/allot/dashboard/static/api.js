// Requests to the server. Every answer is JSON; a problem has the key `error`.

export class ApiError extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

export async function get(path, query) {
  const search = new URLSearchParams(query || {}).toString();
  return answer(await fetch(search ? `${path}?${search}` : path, { headers: { Accept: "application/json" } }));
}

export async function post(path, body, signal) {
  return answer(await fetch(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
    signal,
  }));
}

async function answer(response) {
  const body = await response.json().catch(() => ({ error: `the server answered ${response.status}` }));
  if (!response.ok) throw new ApiError(body.error || `the server answered ${response.status}`, response.status);
  return body;
}

// The stream of changes. The browser connects again by itself; everything is sent anew then.
export function stream(handlers, onState) {
  const source = new EventSource("/api/stream");
  for (const [name, handler] of Object.entries(handlers)) {
    source.addEventListener(name, (event) => handler(JSON.parse(event.data)));
  }
  source.onopen = () => onState(true);
  source.onerror = () => {
    onState(false);
    if (source.readyState === EventSource.CLOSED) setTimeout(() => stream(handlers, onState), 3000);
  };
  return source;
}
