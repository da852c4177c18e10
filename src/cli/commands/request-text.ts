import type { LoggedRequest, LoggedRequestDetails } from '../client/calls.ts'

/** `2026-03-01T10:00:00.000Z  GET https://api.example.com/contacts  200 success  84 ms  run  <id>`. */
export function requestLine({
  startedAt,
  totalMs,
  attempt,
  cause,
  id,
  errorMessage,
  ...request
}: LoggedRequest): string {
  const outcome = [request.status, request.class].filter((part) => part !== undefined).join(' ')
  const parts = [startedAt.toISOString(), `${request.httpMethod} ${request.url}`, outcome, `${Math.round(totalMs)} ms`]
  const repeated = attempt > 1 ? [`attempt ${attempt}`] : []
  return [...parts, ...repeated, cause, id, ...(errorMessage === undefined ? [] : [errorMessage])].join('  ')
}

/** The entry in lines: request and answer with their headers and bodies, what it was sent for, and where its time went. */
export function requestText(request: LoggedRequestDetails): readonly string[] {
  const { content, cause, causeId, integratedAccountId, upstreamRequestId, resource, method } = request
  const facts = [
    ['for', [cause, causeId].filter(Boolean).join(' ')],
    ['account', integratedAccountId],
    ['method', resource === '' ? undefined : `${resource}.${method}`],
    ['their request id', upstreamRequestId],
    ['phases', phasesText(request)],
    ['bytes', `${request.bytesSent} sent, ${request.bytesReceived} received`],
  ].flatMap(([name, value]) => (value ? [`${name}: ${value}`] : []))
  if (content === undefined) return [requestLine(request), ...facts, 'headers and bodies of this request were not kept']
  return [
    requestLine(request),
    ...facts,
    '',
    `> ${request.httpMethod} ${request.url}`,
    ...content.requestHeaders.map(({ name, value }) => `> ${name}: ${value}`),
    ...bodyLines(content.requestBody),
    '',
    `< ${request.status ?? request.class}`,
    ...content.responseHeaders.map(({ name, value }) => `< ${name}: ${value}`),
    ...bodyLines(content.responseBody),
  ]
}

function phasesText({ timings }: LoggedRequestDetails): string {
  const { dnsMs, connectMs, tlsMs, firstByteMs, totalMs } = timings ?? {}
  const phases = { dns: dnsMs, connect: connectMs, tls: tlsMs, 'first byte': firstByteMs, total: totalMs }
  return Object.entries(phases)
    .flatMap(([name, ms]) => (ms === undefined ? [] : [`${name} ${ms.toFixed(1)} ms`]))
    .join(', ')
}

function bodyLines(body: string): readonly string[] {
  return body === '' ? [] : ['', ...body.split('\n')]
}

/** Headers that curl sets itself, or that would not fit the request that it sends. */
const OWN_HEADERS: ReadonlySet<string> = new Set(['accept-encoding', 'content-length', 'host', 'connection'])

/** The request as a command of curl; masked credentials are `***` in it. */
export function curlText({ httpMethod, url, content }: LoggedRequestDetails): string {
  const headers = (content?.requestHeaders ?? []).filter(({ name }) => !OWN_HEADERS.has(name.toLowerCase()))
  const body = content?.requestBody ?? ''
  return [
    `curl -X ${quoted(httpMethod)} ${quoted(url)}`,
    ...headers.map(({ name, value }) => `-H ${quoted(`${name}: ${value}`)}`),
    ...(body === '' ? [] : [`--data-raw ${quoted(body)}`]),
  ].join(' \\\n  ')
}

/** One word of a POSIX shell, whatever the text is. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}
