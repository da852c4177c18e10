import { htmlReply, listen, type Peer, send } from './listen.ts'

/** What a page of the application has seen; `page.evaluate(() => window.seen)` reads it. */
export interface SeenByHost {
  /** Messages that arrived at the window, as JSON. */
  readonly messages: readonly string[]
  readonly events: readonly Record<string, unknown>[]
  result?: unknown
  error?: { readonly code: string; readonly fallbackUrl?: string }
}

declare global {
  interface Window {
    seen: SeenByHost
    options: Record<string, unknown>
    abort?: AbortController
  }
}

/**
 * An application that embeds the connect client: `/` has a button that calls `connect` with `window.options`, `/return` calls
 * `resume`. Query parameter `coop` is sent as Cross-Origin-Opener-Policy. Its Content-Security-Policy is the one that the
 * client's README asks for.
 */
export async function startHost(productUrl: string): Promise<Peer> {
  const { origin } = new URL(productUrl)
  const policy = [
    `default-src 'self'`,
    `script-src 'self' ${origin}`,
    `connect-src ${origin}`,
    `form-action ${origin}`,
    `frame-src ${origin}`,
  ].join('; ')
  return await listen((request, response) => {
    const url = new URL(request.url ?? '/', 'http://host')
    if (url.pathname === '/host.js') {
      send(response, { status: 200, headers: { 'content-type': 'text/javascript' }, body: script(productUrl) })
      return
    }
    const coop = url.searchParams.get('coop')
    const headers = {
      'content-security-policy': policy,
      ...(coop === null ? {} : { 'cross-origin-opener-policy': coop }),
    }
    const body = `<main><h1>An application</h1><button id="connect">Connect</button> <a href="#elsewhere">A link</a>
      <div id="container"></div></main><script type="module" src="/host.js"></script>`
    send(response, htmlReply(200, body, headers))
  })
}

function script(productUrl: string): string {
  return `
import { connect, resume } from ${JSON.stringify(`${productUrl}/connect/client.js`)}
const seen = (window.seen = { messages: [], events: [] })
addEventListener('message', (event) => seen.messages.push(JSON.stringify(event.data)))
const settle = (promise) =>
  promise.then(
    (result) => (seen.result = result ?? null),
    (error) => (seen.error = { code: error.code, fallbackUrl: error.fallbackUrl }),
  )
const onEvent = (event) => seen.events.push(event)
document.querySelector('#connect').onclick = () => {
  window.abort = new AbortController()
  const { inline, ...options } = window.options
  const container = inline ? document.querySelector('#container') : undefined
  settle(connect({ ...options, onEvent, signal: window.abort.signal, container }))
}
if (location.pathname === '/return') settle(resume({ onEvent }))
// A call without a click: the popup blocker applies.
const auto = new URL(location.href).hash.slice(1)
if (auto) settle(connect({ ...JSON.parse(decodeURIComponent(auto)), onEvent }))
document.documentElement.dataset.ready = 'true'
`
}
