import { randomBytes, randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { escapeHtml, htmlReply, jsonReply, listen, type Peer, type Reply, readBody, send } from './listen.ts'

const CLIENT_FILE = join(import.meta.dirname, '../../../../clients/connect/connect.js')

/** The session of one token: how the client takes each answer. */
export interface ScriptedSession {
  readonly token: string
  /** What `POST /connect/status` answers from now on; before, that the session is opened. */
  answer(status: number, body: unknown): void
  /** Holds the next status request with the answer of its arrival; resolves, once it has come, with what releases it. */
  holdNext(): Promise<() => void>
  /** Bodies of `POST /connect`. */
  readonly opened: readonly URLSearchParams[]
  /** Number of status requests. */
  polls(): number
}

/** The server's side of the connect client, with answers that a test sets. */
export interface ScriptedPage extends Peer {
  /** @param id of the session; `silent` has a frame that sends nothing */
  session(id?: string): ScriptedSession
}

interface Scripted {
  reply: Reply
  polls: number
  readonly opened: URLSearchParams[]
  /** Takes what releases the next status request. */
  hold: ((release: () => void) => void) | undefined
}

export async function startScriptedPage(): Promise<ScriptedPage> {
  const sessions = new Map<string, Scripted>()
  const peer = await listen(async (request, response) => {
    const path = (request.url ?? '').replace(/\?.*/, '')
    const cors = {
      'access-control-allow-origin': request.headers.origin ?? '',
      'access-control-allow-headers': 'authorization',
    }
    if (path === '/connect/client.js') {
      const headers = { 'content-type': 'text/javascript', ...cors }
      send(response, { status: 200, headers, body: readFileSync(CLIENT_FILE, 'utf8') })
    } else if (request.method === 'OPTIONS') send(response, { status: 204, headers: cors })
    else if (path === '/connect/status') {
      const session = sessions.get(request.headers.authorization?.replace('Bearer ', '') ?? '')
      if (session !== undefined) session.polls += 1
      const reply = session?.reply ?? jsonReply(401, { error: { code: 'invalid_token' } })
      const hold = session?.hold
      if (session !== undefined) session.hold = undefined
      if (hold !== undefined) await new Promise<void>(hold)
      send(response, { ...reply, headers: { ...reply.headers, ...cors } })
    } else if (path === '/connect') {
      const form = new URLSearchParams(await readBody(request))
      sessions.get(form.get('link_token') ?? '')?.opened.push(form)
      send(response, htmlReply(200, '<h1>The page</h1>'))
    } else send(response, htmlReply(200, frameBody(request.url ?? '')))
  }, '127.0.0.1')
  return {
    ...peer,
    session(id = randomUUID()) {
      const token = `lnk_${id}_${randomBytes(12).toString('hex')}`
      const session: Scripted = { reply: jsonReply(200, { status: 'opened' }), polls: 0, opened: [], hold: undefined }
      sessions.set(token, session)
      return {
        token,
        opened: session.opened,
        polls: () => session.polls,
        answer: (status, body) => {
          session.reply = jsonReply(status, body)
        },
        holdNext: () =>
          new Promise((arrived) => {
            session.hold = arrived
          }),
      }
    },
  }
}

/** A frame that speaks the protocol: a text field makes it dirty, Escape and a button ask to close it. */
function frameBody(url: string): string {
  if (url.includes('silent')) return '<p>Blocked</p>'
  return `<h1>The frame of ${escapeHtml(url)}</h1><input aria-label="Entry"><button>Close me</button><script>
const send = (message) => parent.postMessage({ source: 'patchbay', v: 1, ...message }, document.referrer || '*')
addEventListener('message', ({ data, origin }) => {
  if (data.type !== 'init') return
  document.body.dataset.init = JSON.stringify({ ...data, origin })
  send({ type: 'resize', height: 321 })
})
document.querySelector('input').oninput = () => send({ type: 'dirty', dirty: true })
document.querySelector('button').onclick = () => send({ type: 'close' })
addEventListener('keydown', (event) => event.key === 'Escape' && send({ type: 'close' }))
send({ type: 'ready' })
</script>`
}
