import { Failure, type StatusCode } from '../../../foundation/base/index.ts'
import { JSON_VALUES_MAX, type JsonObject } from '../../../foundation/json/index.ts'
import { callerOf } from '../caller.ts'
import type { Exchange } from '../exchange.ts'
import { decodeJson, encodeJson } from '../messages/codec.ts'
import { countValues, tooManyValues } from '../messages/json-text.ts'
import type { UnaryOperation } from '../operation.ts'
import { toFailure } from '../pipeline/errors.ts'
import { completeExchange } from '../pipeline/respond.ts'
import { runOperation } from '../pipeline/run-operation.ts'
import { RequestContext } from '../request-context.ts'
import { maskSecrets } from './secrets.ts'

/**
 * Calls an operation inside an authenticated request, through the pipeline of every request: access rule, limits, validation,
 * handler, mapping of errors, metrics. The caller and the id of the request are those of `outer`, whose end interrupts the call.
 *
 * @param args the request message as JSON
 * @returns the answer as JSON without secrets, or why there is none
 */
export async function callOperation(
  outer: Exchange,
  operation: UnaryOperation,
  args: JsonObject,
  signal: AbortSignal,
): Promise<JsonObject | Failure> {
  const context = innerContext(outer, operation)
  const request = { server: outer.server, context, operationPath: operation.path }
  const ended = AbortSignal.any([signal, outer.context.signal])
  const onEnd = () =>
    context.interrupt(
      ended.reason instanceof Failure ? ended.reason : new Failure('CANCELLED', 'the call was cancelled'),
    )
  ended.addEventListener('abort', onEnd, { once: true })
  if (ended.aborted) onEnd()
  let outcome: StatusCode | 'OK' = 'OK'
  try {
    const { input, output } = operation
    const decode = () => {
      if (countValues(args, JSON_VALUES_MAX) > JSON_VALUES_MAX) throw tooManyValues()
      return decodeJson(input, args)
    }
    const result = await runOperation(request, operation, { decode }, (message) => operation.handle(message, context))
    return maskSecrets(output, encodeJson(output, result))
  } catch (error) {
    const failure = toFailure(request, error)
    outcome = failure.code
    return failure
  } finally {
    ended.removeEventListener('abort', onEnd)
    completeExchange(request, outcome)
  }
}

function innerContext({ request, context: outer }: Exchange, { method }: UnaryOperation): RequestContext {
  const head = { headers: { 'x-request-id': outer.requestId }, socket: request.socket }
  // The outer request is the one that is authenticated again: it ends with the account that the call notes.
  const context = new RequestContext(head, outer.values)
  context.setMethod(method, 'mcp')
  context.setCaller(callerOf(outer), outer.token)
  context.slot = outer.slot
  return context
}
