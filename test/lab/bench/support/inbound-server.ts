/** The API of the product without a worker, on the database of a running `patchbay start`. Prints its port. */

import { silentLogger } from '../../../../src/foundation/telemetry/logger.ts'
import { createApi } from '../../../../src/server/api-server.ts'
import { readConfig } from '../../../../src/server/config/config.ts'
import { createContainer } from '../../../../src/server/container.ts'
import { openStorage } from '../../../../src/server/open.ts'

const config = readConfig({ ...process.env, PATCHBAY_PORT: '0' })
const logger = silentLogger
const storage = await openStorage(config, { applicationName: 'patchbay bench', isStart: false, logger })
const { url } = await createApi({ config, container: createContainer({ config, storage, logger }), logger }).listen()
process.stdout.write(`${new URL(url).port}\n`)
