/** The parts of a resource that a caller of `expectJson` reads without knowing its type. */
export interface JsonAnswer {
  readonly id: string
  readonly secret: string
  // biome-ignore lint/suspicious/noExplicitAny: tests read answers as a client without types would
  readonly [field: string]: any
}

/** One REST call, successful or not. */
export async function callRest(
  method: string,
  url: string,
  token: string | undefined,
  body?: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<{ status: number; headers: Headers; body: JsonAnswer }> {
  const answer = await fetch(url, {
    method,
    headers: {
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  const text = await answer.text()
  return { status: answer.status, headers: answer.headers, body: text === '' ? {} : JSON.parse(text) }
}

/** One REST call that must succeed; resolves with its JSON. */
export async function expectJson(method: string, url: string, token: string, body?: unknown): Promise<JsonAnswer> {
  const answer = await callRest(method, url, token, body)
  if (answer.status !== 200)
    throw new Error(`${method} ${url} answered ${answer.status}: ${JSON.stringify(answer.body)}`)
  return answer.body
}
