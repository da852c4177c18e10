/**
 * The services of the product, served by connect-node alone: same handlers, authentication and validation, on the
 * database of a running `patchbay start`. Prints its port.
 */

import { createApiServer, createServices, Health } from '../../../src/api/index.ts'
import { systemClock } from '../../../src/base/index.ts'
import { readConfig } from '../../../src/config.ts'
import { createContainer } from '../../../src/container.ts'
import { openStorage } from '../../../src/open-storage.ts'
import { silentLogger } from '../../../src/telemetry/logger.ts'
import { createAuthenticator } from '../../../src/tenancy/index.ts'

const config = readConfig(process.env)
const logger = silentLogger
const storage = await openStorage(config, { applicationName: 'patchbay bench', isStart: false, logger })
const server = createApiServer({
  services: createServices(createContainer({ config, storage, logger })),
  authenticator: createAuthenticator({ database: storage.database, clock: systemClock }),
  clock: systemClock,
  logger,
  health: new Health([]),
  limits: { rateRequestsMax: 0, rateAddressMax: 0 },
  isConnectOnly: true,
})
const { port } = await server.listen('127.0.0.1', 0)
process.stdout.write(`${port}\n`)
