import { createServer, type RequestListener, type Server } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import type { MessageInitShape } from '@bufbuild/protobuf'
import { timestampFromDate } from '@bufbuild/protobuf/wkt'
import { Code, ConnectError, type ConnectRouter, type ServiceImpl } from '@connectrpc/connect'
import { connectNodeAdapter } from '@connectrpc/connect-node'
import { ErrorInfoSchema } from '../../../../../gen/google/rpc/error_details_pb.ts'
import type { ClaimedRunSchema } from '../../../../../gen/patchbay/v1/daemon_pb.ts'
import { DaemonService } from '../../../../../gen/patchbay/v1/daemon_service_pb.ts'
import { ProxyService } from '../../../../../gen/patchbay/v1/proxy_service_pb.ts'
import { newId } from '../../../../../src/foundation/base/index.ts'

/** Answers that replace the usual ones. */
export type Script = Partial<
  Pick<ServiceImpl<typeof DaemonService>, 'heartbeat' | 'reportProgress' | 'claimRuns' | 'completeRun'>
> & {
  readonly leaseSeconds?: number
  /** The only token with which a daemon may register. Absent: any. */
  readonly token?: string
  /** Awaited before a page is sent. */
  readonly beforePage?: (page: number) => Promise<void> | void
  /** Before this page the third party asks to wait, seconds. */
  readonly wait?: { readonly page: number; readonly seconds: number }
}

/** A service with one run on a real socket. */
export interface ScriptedService extends AsyncDisposable {
  readonly url: string
  /** Names of the calls in order, with their relevant arguments. */
  readonly calls: readonly string[]
  /** Id of its run. */
  readonly runId: string
  readonly leaseId: string
  /** Authorization headers of all calls. */
  readonly authorizations: ReadonlySet<string>
  /** Versions of registered daemons. */
  readonly versions: ReadonlySet<string>
  /** Resolves when a call that begins so has been made for the nth time. */
  called(start: string, times?: number): Promise<void>
  /** Closes every connection and rejects new ones, until `restart`. */
  stop(): Promise<void>
  restart(): Promise<void>
}

const PAGES = 5
const PAGE_RECORDS = 2

/** Starts a service that has one run of 10 records on 5 pages, leased to the first claim. */
export async function startScriptedService(
  script: Script = {},
  tls?: { readonly cert: string; readonly key: string },
): Promise<ScriptedService> {
  const calls: string[] = []
  const waiting = new Set<() => void>()
  const [runId, leaseId] = [newId(), newId()]
  const note = (call: string): void => {
    calls.push(call)
    for (const look of [...waiting]) look()
  }
  let isHandedOut = false
  const drained = Promise.withResolvers<void>()
  const [authorizations, versions] = [new Set<string>(), new Set<string>()]
  const routes = (router: ConnectRouter): void => {
    router.service(DaemonService, {
      registerDaemon({ version }, { requestHeader }) {
        note('register')
        versions.add(version)
        const authorization = requestHeader.get('authorization') ?? ''
        authorizations.add(authorization)
        if (script.token !== undefined && authorization !== `Bearer ${script.token}`)
          throw serviceError(Code.Unauthenticated, 'UNAUTHENTICATED')
        return { daemonId: newId(), heartbeatSeconds: 1, leaseSeconds: script.leaseSeconds ?? 30 }
      },
      async claimRuns(request, context) {
        note('claim')
        if (script.claimRuns !== undefined) return await script.claimRuns(request, context)
        if (isHandedOut) await drained.promise
        const runs = isHandedOut ? [] : [claimedRun(runId, leaseId)]
        isHandedOut = true
        return { runs }
      },
      async heartbeat(request, context) {
        note(request.isDraining ? 'heartbeat draining' : 'heartbeat')
        if (request.isDraining) drained.resolve()
        if (script.heartbeat !== undefined) return await script.heartbeat(request, context)
        return { held: request.held.map((held) => ({ runId: held.runId, leaseId: held.leaseId })) }
      },
      async reportProgress(request, context) {
        note(request.waitSeconds === undefined ? 'report' : `report wait ${request.waitSeconds}`)
        return (await script.reportProgress?.(request, context)) ?? {}
      },
      async completeRun(request, context) {
        note('complete')
        return (await script.completeRun?.(request, context)) ?? {}
      },
      failRun({ error, retryable }) {
        note(`fail ${error?.reason} ${retryable}`)
        return {}
      },
      releaseRun() {
        note('release')
        return {}
      },
    })
    router.service(ProxyService, {
      async *listPages({ valuesJson }) {
        const { state } = JSON.parse(valuesJson)
        note(`list ${state?.page ?? 1}`)
        for (let number = Number(state?.page ?? 1); number <= PAGES; number++) {
          await script.beforePage?.(number)
          const { wait } = script
          if (wait?.page === number) yield { step: { case: 'waiting' as const, value: wait } }
          const ids = Array.from({ length: PAGE_RECORDS }, (_, index) => (number - 1) * PAGE_RECORDS + index + 1)
          const recordsJson = JSON.stringify(ids.map((id) => ({ id })))
          const stateJson = JSON.stringify({ page: number + 1 })
          const next = number < PAGES ? { stateJson } : { stopReason: 'no_cursor' }
          yield { step: { case: 'page' as const, value: { number, recordsJson, ...next } } }
        }
      },
    })
  }
  const listener: RequestListener = connectNodeAdapter({ routes })
  let front = await listen(listener, 0, tls)
  const { port } = front.address() as AddressInfo
  return {
    calls,
    authorizations,
    versions,
    runId,
    leaseId,
    url: `${tls === undefined ? 'http' : 'https'}://localhost:${port}`,
    async called(start, times = 1) {
      const { promise, resolve } = Promise.withResolvers<void>()
      const look = () => calls.filter((call) => call.startsWith(start)).length >= times && resolve()
      waiting.add(look)
      look()
      await promise
      waiting.delete(look)
    },
    stop: () => close(front),
    async restart() {
      front = await listen(listener, port, tls)
    },
    [Symbol.asyncDispose]: () => close(front),
  }
}

/** An error with a reason, as the service throws it. */
export function serviceError(code: Code, reason: string): ConnectError {
  return new ConnectError(reason, code, undefined, [{ desc: ErrorInfoSchema, value: { reason, domain: 'patchbay' } }])
}

function claimedRun(runId: string, leaseId: string): MessageInitShape<typeof ClaimedRunSchema> {
  const resources = [{ resource: 'contacts', method: 'list', persist: true }]
  const values = { args: {}, resources, context: {}, environment_variables: {}, checkpoint: null }
  return {
    valuesJson: JSON.stringify(values),
    run: {
      id: runId,
      environmentId: newId(),
      syncJobId: newId(),
      integratedAccountId: newId(),
      attempt: 1,
      errorHandling: 'ignore',
      resources,
    },
    leaseId,
    leaseExpiresAt: timestampFromDate(new Date()),
    attemptsMax: 5,
    tenantId: 'acme',
    resources: [{ idPath: ['id'], parentPaths: [] }],
  }
}

const sockets = new WeakMap<Server, Set<Socket>>()

async function listen(listener: RequestListener, port: number, tls?: { cert: string; key: string }): Promise<Server> {
  const server = tls === undefined ? createServer(listener) : (createTlsServer(tls, listener) as unknown as Server)
  const open = new Set<Socket>()
  sockets.set(server, open)
  server.on('connection', (socket: Socket) => open.add(socket))
  await new Promise<void>((resolve) => server.listen(port, 'localhost', resolve))
  return server
}

async function close(server: Server): Promise<void> {
  for (const socket of sockets.get(server) ?? []) socket.destroy()
  await new Promise<void>((resolve) => server.close(() => resolve()))
}
