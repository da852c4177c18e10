import { createServer, type Socket } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { Database, findDatabaseProblem, query } from '../../../../src/foundation/database/index.ts'

/** Messages of a server that accepts every connection: authentication, then ready for a statement. */
const READY = Buffer.from('5200000008000000005a0000000549', 'hex')
const ANSWER = Buffer.from(`430000000d${Buffer.from('SELECT 0\0').toString('hex')}5a0000000549`, 'hex')

it('a statement whose server is gone fails a little after its timeout, as a database that is not reachable', async () => {
  let statements = 0
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.once('data', () => {
      socket.write(READY)
      // It sets the session, and says nothing from then on.
      socket.on('data', () => {
        if (statements++ === 0) socket.write(ANSWER)
      })
    })
    socket.on('error', () => {})
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const { port } = server.address() as { port: number }
  await using database = new Database({
    target: { kind: 'url', url: `postgres://u:p@127.0.0.1:${port}/d` },
    statementTimeoutMs: 100,
    silenceGraceMs: 100,
  })
  const error = await query(database.pool, 'select 1').catch((found: unknown) => found)
  expect(findDatabaseProblem(error)).toMatchObject({ reason: 'DATABASE_UNAVAILABLE' })
})
