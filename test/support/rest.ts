import { setTimeout as sleep } from 'node:timers/promises'

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

/** A busy machine may take so many calls until the database of a product has answered for the first time. */
const ATTEMPTS_MAX = 5

/** One REST call that must succeed; resolves with its JSON. A 503 is asked again after a second, as it says. */
export async function expectJson(method: string, url: string, token: string, body?: unknown): Promise<JsonAnswer> {
  for (let attempt = 1; ; attempt++) {
    const answer = await callRest(method, url, token, body)
    if (answer.status === 200) return answer.body
    if (answer.status !== 503 || attempt === ATTEMPTS_MAX)
      throw new Error(`${method} ${url} answered ${answer.status}: ${JSON.stringify(answer.body)}`)
    await sleep(1_000)
  }
}
