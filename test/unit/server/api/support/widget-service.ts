import { type Message, toJson } from '@bufbuild/protobuf'
import type { HandlerContext } from '@connectrpc/connect'
import { Failure, notFound } from '../../../../../src/foundation/base/index.ts'
import { defineService, type ServiceDefinition } from '../../../../../src/server/api/operation.ts'
import { WidgetService } from './contract.ts'

/** Ways in which `Fail` fails. */
const FAILURES: Readonly<Record<string, () => unknown>> = {
  bug: () => new TypeError('a secret of the stack'),
  missing: () => notFound('widget', '0192d3a4-0000-7000-8000-000000000001'),
  taken: () => new Failure('NAME_TAKEN', 'the name is taken: choose another', { metadata: { name: 'a' } }),
  busy: () => new Failure('GROUP_FULL', 'the group is full', { retryAfterSeconds: 2.5 }),
  sandbox: () => new Failure('SANDBOX_ACCOUNT_READ_ONLY', 'the account is a sandbox'),
  upstream: () => new Failure('UPSTREAM_ERROR', 'the upstream said 418'),
  down: () => new Failure('DATABASE_UNAVAILABLE', 'the database does not answer'),
  translated: () => new RangeError('known to the translation'),
}

/** What the handlers told the test about. */
export interface WidgetEvents {
  /** The last call that reached a handler. */
  readonly calls: HandlerContext[]
  /** Resolves when a handler is waiting. */
  waiting: PromiseWithResolvers<HandlerContext>
  /** Lets waiting handlers answer. */
  release: PromiseWithResolvers<void>
  /** Resolves when a stream's handler was closed. */
  streamClosed: PromiseWithResolvers<void>
  /** Answers taken out of the stream's handler so far. */
  streamed: number
}

export function createEvents(): WidgetEvents {
  return {
    calls: [],
    waiting: Promise.withResolvers(),
    release: Promise.withResolvers(),
    streamClosed: Promise.withResolvers(),
    streamed: 0,
  }
}

/** Handlers that answer with what they were asked. */
export function widgetService(events: WidgetEvents): ServiceDefinition {
  const echo = async (request: Message, context: HandlerContext) => {
    events.calls.push(context)
    return widgetOf(request)
  }
  const reflect = async (request: Message) => widgetOf(request)
  // The descriptor is known at run time only, so there are no types that `defineService` could check.
  const implementation = {
    get: echo,
    list: async (request: Message) => ({ widgets: [], request: jsonOf(request) }),
    create: echo,
    update: echo,
    replacePart: echo,
    archive: echo,
    preview: echo,
    find: echo,
    transcode: echo,
    delete: async () => ({}),
    teamOnly: reflect,
    anyToken: reflect,
    open: reflect,
    async wait(request: Message, context: HandlerContext) {
      events.waiting.resolve(context)
      await events.release.promise
      return widgetOf(request)
    },
    async fail(request: Message) {
      throw FAILURES[String(read(request, 'how'))]?.()
    },
    watch: (request: Message, context: HandlerContext) => watch(events, request, context),
    async *chat(requests: AsyncIterable<Message>, context: HandlerContext) {
      for await (const request of requests) {
        context.responseHeader.set('widget-chat', 'open')
        yield widgetOf(request)
      }
      context.responseHeader.set('widget-chat', 'ended')
    },
  }
  return defineService(WidgetService, implementation as never, {
    create: (request: Message) =>
      read(request, 'name') === 'forbidden'
        ? [{ field: 'name', description: 'is forbidden', rule: 'name.forbidden', reason: 'NAME_TAKEN' as const }]
        : [],
  })
}

async function* watch(events: WidgetEvents, request: Message, context: HandlerContext) {
  try {
    for (let at = 0; at < Number(read(request, 'count')); at += 1) {
      events.streamed += 1
      yield { ...widgetOf(request), name: `${at}`, tags: ['x'.repeat(Number(read(request, 'padding')))] }
    }
    const afterwards = String(read(request, 'afterwards'))
    events.waiting.resolve(context)
    if (afterwards === 'wait') await new Promise((resolve) => context.signal.addEventListener('abort', resolve))
    else if (afterwards !== '') throw FAILURES[afterwards]?.()
  } finally {
    events.streamClosed.resolve()
  }
}

function widgetOf(request: Message) {
  return {
    id: String(read(request, 'id') ?? ''),
    name: String(read(request, 'name') ?? ''),
    etag: 'v1',
    createdAt: { seconds: 1_800_000_000n, nanos: 0 },
    attributes: {},
    request: jsonOf(request),
    partsByName: { wheel: { name: 'wheel', madeAt: { seconds: 1_800_000_000n, nanos: 123_456_789 } } },
    inner: { createdAt: { seconds: 1_800_000_000n, nanos: 500_000_000 } },
  }
}

function jsonOf(request: Message): Record<string, never> {
  const desc = WidgetService.methods.map(({ input }) => input).find(({ typeName }) => typeName === request.$typeName)
  if (desc === undefined) throw new Error(request.$typeName)
  return toJson(desc, request, { useProtoFieldName: true }) as Record<string, never>
}

function read(request: Message, name: string): unknown {
  return Reflect.get(request, name)
}
