/**
 * The services of the product behind a bare connect-node server: same handlers, tokens, rules and database, and nothing else of
 * the pipeline. On the database of a running `patchbay start`. Prints its port.
 */

import { createServer as createServer1 } from 'node:http'
import { createServer as createServer2 } from 'node:http2'
import { type AddressInfo, createServer } from 'node:net'
import { ConnectError, type Interceptor } from '@connectrpc/connect'
import { connectNodeAdapter } from '@connectrpc/connect-node'
import { Failure, systemClock } from '../../../../src/foundation/base/index.ts'
import { silentLogger } from '../../../../src/foundation/telemetry/logger.ts'
import { createAuthenticator } from '../../../../src/platform/tenancy/index.ts'
import { callerKey } from '../../../../src/server/api/caller.ts'
import { validateRules } from '../../../../src/server/api/messages/rules.ts'
import { grpcCode } from '../../../../src/server/api/pipeline/errors.ts'
import { createServices } from '../../../../src/server/api/services/registry.ts'
import { readConfig } from '../../../../src/server/config/index.ts'
import { createContainer } from '../../../../src/server/container.ts'
import { openStorage } from '../../../../src/server/open.ts'

const config = readConfig(process.env)
const logger = silentLogger
const storage = await openStorage(config, { applicationName: 'patchbay bench', isStart: false, logger })
const services = createServices(createContainer({ config, storage, logger }))
const authenticator = createAuthenticator({ database: storage.database, clock: systemClock })

const serve: Interceptor = (next) => async (request) => {
  try {
    const text = request.header.get('authorization')?.replace(/^Bearer +/i, '') ?? ''
    request.contextValues.set(callerKey, await authenticator.authenticate(authenticator.parseToken(text)))
    if (!request.stream && validateRules(request.method.input, request.message).length > 0)
      throw new Failure('INVALID_FIELD', 'invalid')
    return await next(request)
  } catch (error) {
    throw error instanceof Failure ? new ConnectError(error.publicMessage, grpcCode(error)) : error
  }
}

const handle = connectNodeAdapter({
  interceptors: [serve],
  routes(router) {
    for (const { desc, implementation } of services) router.service(desc, implementation)
  },
})
const http1 = createServer1(handle)
const http2 = createServer2(handle)
const port = createServer((socket) => {
  socket.once('readable', () => {
    const head: Buffer | null = socket.read()
    if (head === null) return
    socket.unshift(head)
    const server = head.toString('latin1', 0, 3) === 'PRI' ? http2 : http1
    server.emit('connection', socket)
  })
})
port.listen(0, '127.0.0.1', () => process.stdout.write(`${(port.address() as AddressInfo).port}\n`))
