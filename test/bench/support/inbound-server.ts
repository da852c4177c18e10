/** The API of the product without a worker, on the database of a running `patchbay start`. Prints its port. */

import { createApi } from '../../../src/api-process.ts'
import { readConfig } from '../../../src/config.ts'
import { createContainer } from '../../../src/container.ts'
import { openStorage } from '../../../src/open-storage.ts'
import { silentLogger } from '../../../src/telemetry/logger.ts'

const config = readConfig({ ...process.env, PATCHBAY_PORT: '0' })
const logger = silentLogger
const storage = await openStorage(config, { applicationName: 'patchbay bench', isStart: false, logger })
const { url } = await createApi({ config, container: createContainer({ config, storage, logger }), logger }).listen()
process.stdout.write(`${new URL(url).port}\n`)
