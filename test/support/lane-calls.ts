import type { DescMethod } from '@bufbuild/protobuf'
import { afterAll } from 'vitest'
import type { JsonObject } from '../../src/foundation/json/index.ts'
import { silentLogger } from '../../src/foundation/telemetry/logger.ts'
import type { Principal } from '../../src/platform/tenancy/index.ts'
import { decodeJsonBody } from '../../src/server/api/messages/codec.ts'
import { compileOperations, type UnaryOperation } from '../../src/server/api/operation.ts'
import { RequestContext } from '../../src/server/api/request-context.ts'
import { createServices } from '../../src/server/api/services/registry.ts'
import { readConfig } from '../../src/server/config/index.ts'
import { createContainer } from '../../src/server/container.ts'
import type { TestApp } from './app.ts'
import { fastClock } from './fast-clock.ts'
import type { Lane, Operation } from './interleavings.ts'

/**
 * Calls of the contract as operations of `interleavings`: the handler of each lane is that of a process of its own, on the
 * connections of the lane.
 */
export function laneCalls({ secrets }: Pick<TestApp, 'secrets'>, clock = fastClock()) {
  const operations = new Map<Lane['database'], ReturnType<typeof compileOperations>>()

  function operationsOn({ database }: Lane): ReturnType<typeof compileOperations> {
    const known = operations.get(database)
    if (known !== undefined) return known
    const storage = { database, secrets, embedded: undefined, [Symbol.asyncDispose]: async () => {} }
    const container = createContainer({ config: readConfig({}), storage, logger: silentLogger, clock })
    afterAll(() => container[Symbol.asyncDispose]())
    const made = compileOperations(createServices(container))
    operations.set(database, made)
    return made
  }

  return (method: DescMethod, request: JsonObject, caller: Principal): Operation =>
    async (lane) => {
      const operation = operationsOn(lane).get(`/${method.parent.typeName}/${method.name}`) as UnaryOperation
      const context = new RequestContext({ headers: {}, socket: {} })
      context.setMethod(method, 'test')
      context.setCaller(caller, undefined)
      const { message } = await decodeJsonBody(operation.input, Buffer.from(JSON.stringify(request)))
      return await operation.handle(message as never, context)
    }
}
