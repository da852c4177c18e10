import { type Message, toJson } from '@bufbuild/protobuf'
import type { EnvironmentCall } from '../../../src/api/caller.ts'
import type { ServiceDefinition } from '../../../src/api/operation.ts'
import { Failure, notFound } from '../../../src/base/index.ts'
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
  readonly calls: EnvironmentCall[]
  /** Resolves when a handler is waiting. */
  waiting: PromiseWithResolvers<EnvironmentCall>
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
  const echo = async (request: Message, call: EnvironmentCall) => {
    events.calls.push(call)
    return widgetOf(request)
  }
  const inEnvironment = { access: 'environment' as const, handle: echo }
  // The descriptor is known at run time only, so there are no types that `defineService` could check.
  const handlers: ServiceDefinition['handlers'] = {
    get: inEnvironment,
    list: {
      access: 'environment',
      handle: async (request: Message) => ({ widgets: [], request: jsonOf(request) }),
    },
    create: {
      ...inEnvironment,
      check: (request: Message) =>
        read(request, 'name') === 'forbidden'
          ? [{ field: 'name', description: 'is forbidden', rule: 'name.forbidden', reason: 'NAME_TAKEN' as const }]
          : [],
    },
    update: inEnvironment,
    replacePart: inEnvironment,
    archive: inEnvironment,
    preview: inEnvironment,
    find: inEnvironment,
    transcode: inEnvironment,
    delete: { access: 'environment', handle: async () => ({}) },
    teamOnly: { access: 'team', handle: async (request: Message) => widgetOf(request) },
    anyToken: { access: 'token', handle: async (request: Message) => widgetOf(request) },
    open: { access: 'public', handle: async (request: Message) => widgetOf(request) },
    wait: {
      access: 'environment',
      async handle(request: Message, call: EnvironmentCall) {
        events.waiting.resolve(call)
        await events.release.promise
        return widgetOf(request)
      },
    },
    fail: {
      access: 'environment',
      async handle(request: Message) {
        throw FAILURES[String(read(request, 'how'))]?.()
      },
    },
    watch: { access: 'environment', handle: (request: Message, call: EnvironmentCall) => watch(events, request, call) },
    chat: {
      access: 'environment',
      async *handle(requests: AsyncIterable<Message>, call: EnvironmentCall) {
        for await (const request of requests) {
          call.setHeader('widget-chat', 'open')
          yield widgetOf(request)
        }
        call.setHeader('widget-chat', 'ended')
      },
    },
  }
  return { desc: WidgetService, handlers }
}

async function* watch(events: WidgetEvents, request: Message, call: EnvironmentCall) {
  try {
    for (let at = 0; at < Number(read(request, 'count')); at += 1) {
      events.streamed += 1
      yield { ...widgetOf(request), name: `${at}`, tags: ['x'.repeat(Number(read(request, 'padding')))] }
    }
    const afterwards = String(read(request, 'afterwards'))
    events.waiting.resolve(call)
    if (afterwards === 'wait') await new Promise((resolve) => call.signal.addEventListener('abort', resolve))
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
