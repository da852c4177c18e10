const SAFE_METHODS = ['GET', 'HEAD', 'POST']
const SAFE_REQUEST_HEADERS = ['accept', 'accept-language', 'content-language', 'range']
const SAFE_CONTENT_TYPES = ['application/x-www-form-urlencoded', 'multipart/form-data', 'text/plain']
const SAFE_RESPONSE_HEADERS = [
  'cache-control',
  'content-language',
  'content-length',
  'content-type',
  'expires',
  'last-modified',
  'pragma',
]

/**
 * `fetch` as a page of the origin has it, without credentials: Node's own knows no CORS. Preflight, check of the answer and
 * the headers a page may read follow the Fetch standard (3.2, "HTTP CORS protocol"; 4.8 and 4.9).
 *
 * @param preflights told of every preflight that was sent
 */
export function browserFetch(origin: string, preflights: Response[] = []): typeof fetch {
  return async (input, init) => {
    const request = new Request(input, { ...init, ...(init?.body ? { duplex: 'half' } : {}) } as RequestInit)
    const unsafe = [...request.headers].filter(([name, value]) => !isSafe(name, value)).map(([name]) => name)
    if (unsafe.length > 0 || !SAFE_METHODS.includes(request.method)) {
      const preflight = await fetch(request.url, {
        method: 'OPTIONS',
        headers: {
          origin,
          'access-control-request-method': request.method,
          ...(unsafe.length > 0 ? { 'access-control-request-headers': unsafe.toSorted().join(',') } : {}),
        },
      })
      preflights.push(preflight)
      checkPreflight(preflight, origin, request.method, unsafe)
    }
    request.headers.set('origin', origin)
    const response = await fetch(request)
    checkOrigin(response, origin)
    return readable(response)
  }
}

function isSafe(name: string, value: string): boolean {
  if (name === 'content-type') return SAFE_CONTENT_TYPES.includes(value.split(';')[0] ?? '')
  return SAFE_REQUEST_HEADERS.includes(name)
}

function checkPreflight(preflight: Response, origin: string, method: string, headers: readonly string[]): void {
  checkOrigin(preflight, origin)
  if (!preflight.ok) throw new TypeError(`the preflight was answered ${preflight.status}`)
  const methods = listOf(preflight, 'access-control-allow-methods')
  if (!(methods.includes(method) || methods.includes('*') || SAFE_METHODS.includes(method)))
    throw new TypeError(`${method} is not allowed`)
  const allowed = listOf(preflight, 'access-control-allow-headers').map((name) => name.toLowerCase())
  for (const name of headers)
    if (!allowed.includes(name) && !(allowed.includes('*') && name !== 'authorization'))
      throw new TypeError(`the header ${name} is not allowed`)
}

function checkOrigin(response: Response, origin: string): void {
  const allowed = response.headers.get('access-control-allow-origin')
  if (allowed !== '*' && allowed !== origin) throw new TypeError(`${origin} is not allowed, but ${allowed}`)
}

/** The response with the headers that a page may read. */
function readable(response: Response): Response {
  const exposed = listOf(response, 'access-control-expose-headers').map((name) => name.toLowerCase())
  const headers = [...response.headers].filter(
    ([name]) => SAFE_RESPONSE_HEADERS.includes(name) || exposed.includes('*') || exposed.includes(name),
  )
  const { status, statusText } = response
  return new Response([204, 304].includes(status) ? null : response.body, { status, statusText, headers })
}

function listOf(response: Response, name: string): readonly string[] {
  return (response.headers.get(name) ?? '').split(',').map((item) => item.trim())
}
