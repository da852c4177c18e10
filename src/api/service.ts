import type {
  DescMessage,
  DescMethodBiDiStreaming,
  DescMethodServerStreaming,
  DescMethodUnary,
  DescService,
  Message,
  MessageInitShape,
  MessageShape,
} from '@bufbuild/protobuf'
import type { FailureReason, Violation } from '../base/index.ts'
import type { Access, Call, EnvironmentCall } from './call.ts'

/** A violation that may also name the reason of the whole refusal; without one the reason is INVALID_FIELD. */
export interface Finding extends Violation {
  readonly reason?: FailureReason
}

/**
 * One operation: who may call it, what else must hold of its request, and what it does.
 *
 * `check` is pure and sees requests that already broke rules; its findings join the others in one refusal.
 * `handle` runs only when nothing was found.
 */
type Handler<Request, Result> =
  | {
      readonly access: 'environment'
      check?(request: Request): readonly Finding[]
      handle(request: Request, call: EnvironmentCall): Result
    }
  | {
      readonly access: Exclude<Access, 'environment'>
      check?(request: Request): readonly Finding[]
      handle(request: Request, call: Call): Result
    }

/** The handler a method's descriptor asks for. */
type HandlerOf<Method> =
  Method extends DescMethodUnary<infer Input, infer Output>
    ? Handler<MessageShape<Input>, Promise<MessageInitShape<Output>>>
    : Method extends DescMethodServerStreaming<infer Input, infer Output>
      ? Handler<MessageShape<Input>, AsyncIterable<MessageInitShape<Output>>>
      : Method extends DescMethodBiDiStreaming<infer Input, infer Output>
        ? Handler<AsyncIterable<MessageShape<Input>>, AsyncIterable<MessageInitShape<Output>>>
        : never

/** A handler for every method of the service, by its name in lower camel case. */
export type ServiceHandlers<Service extends DescService> = {
  readonly [Name in keyof Service['method']]: HandlerOf<Service['method'][Name]>
}

/** What a handler returns, when its type is known only to the descriptor. */
export type ResultInit = MessageInitShape<DescMessage>

/** A handler whose types were checked by `defineService` and are now known only to the descriptor. */
export interface ErasedHandler {
  readonly access: Access
  check?(request: Message): readonly Finding[]
  handle(request: object, call: EnvironmentCall): unknown
}

/** A service with its handlers, ready to be served. */
export interface ServiceDefinition {
  readonly desc: DescService
  readonly handlers: Readonly<Record<string, ErasedHandler>>
}

/**
 * Binds handlers to a service. Every method needs one: a contract without an implementation does not compile.
 */
export function defineService<Service extends DescService>(
  desc: Service,
  handlers: ServiceHandlers<Service>,
): ServiceDefinition {
  return { desc, handlers: handlers as Readonly<Record<string, ErasedHandler>> }
}
