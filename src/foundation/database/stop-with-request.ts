import { connect } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { Failure } from '../base/errors.ts'
import { type CompanionRow, currentRequest, type RequestScope } from '../base/request-scope.ts'
import type { Companion, Send } from './describe-once.ts'
import { isStatementTimeout } from './errors.ts'

/** Parts of the driver's connection that it has and does not declare. */
interface Connection extends Pick<pg.Client, 'host' | 'port'> {
  readonly processID: number | null
  readonly secretKey: number | null
  query: Send
}

/** The longest wait for the server to take a cancel request, which is then sent again. */
const CANCEL_MS = 2_000
const CANCEL_AGAIN_MS = 100

/**
 * Makes the statements of a connection end with the request that they are for (`currentRequest`): when the request is
 * interrupted, the one under way is cancelled in the server and no other begins. A transaction is rolled back, also when it was
 * about to commit; a commit under way is waited for. So what a request writes is committed before its answer or never.
 *
 * The companion of a request (`CompanionRow`) is sent with the first statement or commit that stores something.
 */
export function stopWithRequest(raw: object): void {
  const connection = raw as Connection
  const send: Send = connection.query.bind(connection)
  let isInTransaction = false
  connection.query = (statement, callback) => {
    const kind = kindOf(statement)
    if (kind === 'begin') isInTransaction = true
    if (kind === 'commit' || kind === 'rollback') isInTransaction = false
    const request = currentRequest()
    if (request === undefined || kind === 'rollback') return send(statement, callback)
    const isStoring = kind === 'commit' || (kind === 'write' && !isInTransaction)
    const sent = sendFor(request, { connection, send, statement, kind, isStoring })
    if (callback === undefined) return sent
    sent.then(
      (result) => callback(null, result),
      (error: Error) => callback(error),
    )
    return undefined
  }
}

interface Sending {
  readonly connection: Connection
  readonly send: Send
  readonly statement: unknown
  readonly kind: StatementKind
  /** Its success is final. */
  readonly isStoring: boolean
}

async function sendFor(request: RequestScope, sending: Sending): Promise<unknown> {
  const { connection, send, statement, kind, isStoring } = sending
  if (request.interruption !== undefined) {
    // Knex gives the connection back after a commit, also after a failed one: the transaction has to end here.
    if (kind === 'commit') await send('ROLLBACK')
    throw copyOf(request.interruption)
  }
  const companion = isStoring && request.companion?.isStored === false ? request.companion : undefined
  const outcome =
    companion === undefined ? (send(statement) as Promise<unknown>) : sendWith(companion, send, statement, kind)
  let cancelled: Promise<void> | undefined
  const release = request.holdAnswer(() => {
    if (kind !== 'commit') cancelled = cancelUntil(outcome, connection)
  })
  let isStored = false
  try {
    const result = await outcome
    isStored = isStoring
    return result
  } catch (error) {
    throw request.interruption === undefined || !isStatementTimeout(error) ? error : copyOf(request.interruption)
  } finally {
    // The connection is used again: no cancel request may be on its way to the next statement.
    await cancelled
    release(isStored)
  }
}

/** Sends what stores something with the companion of its request, in one transaction. */
async function sendWith(row: CompanionRow, send: Send, statement: unknown, kind: StatementKind): Promise<unknown> {
  if (kind === 'commit') return await commitWith(row, send)
  if (isNamed(statement)) return await send({ ...statement, companion: companionOf(row, false) })
  // A statement that Knex has built: its driver's own query, which carries nothing.
  await send('BEGIN')
  try {
    const result = await send(statement)
    await commitWith(row, send)
    return result
  } catch (error) {
    await send('ROLLBACK')
    throw error
  }
}

/** Inserts the row and commits, in one round trip; a row that fails takes its transaction with it. */
async function commitWith(row: CompanionRow, send: Send): Promise<unknown> {
  try {
    return await send({ text: 'COMMIT', name: '', values: [], companion: companionOf(row, true) })
  } catch (error) {
    await send('ROLLBACK')
    throw error
  }
}

function companionOf(row: CompanionRow, isFirst: boolean): Companion {
  const onInserted = () => {
    row.isStored = true
  }
  return { text: row.text, values: row.values(), isFirst, onInserted }
}

function isNamed(statement: unknown): statement is { readonly name: string } {
  return typeof statement === 'object' && statement !== null && 'name' in statement && statement.name !== undefined
}

type StatementKind = 'begin' | 'commit' | 'rollback' | 'read' | 'write'

/** A statement that begins with something other than `select` may write. */
function kindOf(statement: unknown): StatementKind {
  const text = typeof statement === 'object' && statement !== null && 'text' in statement ? statement.text : statement
  const [word = ''] = /^\s*\w+/.exec(String(text)) ?? []
  switch (word.trim().toLowerCase()) {
    case 'begin':
    case 'commit':
    case 'rollback':
      return word.toLowerCase() as StatementKind
    case 'select':
      return 'read'
    default:
      return 'write'
  }
}

/** Statements add their text to the message of an error, and a request has one failure for all. */
function copyOf({ reason, publicMessage }: Failure): Failure {
  return new Failure(reason, publicMessage)
}

/** A statement that has not begun when the server gets a cancel request is not cancelled by it: the request is repeated. */
async function cancelUntil(outcome: Promise<unknown>, connection: Connection): Promise<void> {
  const isKnown = outcome.then(
    () => true,
    () => true,
  )
  do await cancelStatement(connection)
  while (!(await Promise.race([isKnown, delay(CANCEL_AGAIN_MS, false)])))
}

/** Protocol number of a cancel request (PostgreSQL, "Canceling Requests in Progress"). */
const CANCEL_REQUEST_CODE = 80_877_102

/**
 * Asks the server to cancel what the connection is doing, over a connection of its own that needs no login, as `PQcancel` does.
 * Resolves when the server has taken the request, which it tells by closing. Without effect on an idle connection.
 */
async function cancelStatement({ host, port, processID, secretKey }: Connection): Promise<void> {
  if (processID === null || secretKey === null) return
  const message = Buffer.alloc(16)
  message.writeInt32BE(16, 0)
  message.writeInt32BE(CANCEL_REQUEST_CODE, 4)
  message.writeInt32BE(processID, 8)
  message.writeInt32BE(secretKey, 12)
  const { promise, resolve } = Promise.withResolvers<void>()
  const socket = connect(host.startsWith('/') ? { path: `${host}/.s.PGSQL.${port}` } : { host, port })
  socket.setTimeout(CANCEL_MS, () => socket.destroy())
  // Without a listener an error would end the process; it means that nothing was cancelled.
  socket.on('error', () => {})
  socket.on('close', () => resolve())
  socket.resume().end(message)
  await promise
}
