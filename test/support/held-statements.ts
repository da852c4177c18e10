import { inspect } from 'node:util'
import type { Database } from '../../src/foundation/database/index.ts'

type Callback = (...result: readonly unknown[]) => void
type Connection = { query(statement: unknown, callback?: Callback): unknown }

/** Called with a statement, which goes on when it resolves. */
type Arrive = (sql: string) => Promise<void>

/**
 * Makes every statement of every connection wait, those that begin and end transactions too. For the database it is under way
 * then: the server gets it late.
 */
export function holdStatements({ pool }: Database, arrive: Arrive): void {
  const { client } = pool
  const acquire: () => Promise<Connection> = client.acquireRawConnection.bind(client)
  client.acquireRawConnection = async () => holdQueries(await acquire(), arrive)
}

/** The same before the database looks at a statement, as if what comes before it took long. */
export function holdBeforeStatements({ pool }: Database, arrive: Arrive): void {
  const { client } = pool
  const acquire: () => Promise<Connection> = client.acquireConnection.bind(client)
  const held = new WeakSet<Connection>()
  client.acquireConnection = async () => {
    const connection = await acquire()
    if (!held.has(connection)) held.add(holdQueries(connection, arrive))
    return connection
  }
}

function holdQueries(connection: Connection, arrive: Arrive): Connection {
  const send = connection.query.bind(connection)
  connection.query = (statement, callback) => {
    if (callback === undefined) return arrive(textOf(statement)).then(() => send(statement))
    void arrive(textOf(statement)).then(() => send(statement, callback))
    return undefined
  }
  return connection
}

function textOf(statement: unknown): string {
  const text = typeof statement === 'object' && statement !== null && 'text' in statement ? statement.text : statement
  return (typeof text === 'string' ? text : inspect(text)).replace(/\s+/g, ' ')
}
