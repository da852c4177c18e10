import { createSealer } from '../../foundation/base/index.ts'
import type { JsonObject } from '../../foundation/json/index.ts'
import type { Plan } from '../definitions/plan.ts'
import { actionPages, callAction, runAction } from './actions.ts'
import { AnswerMemory } from './answer-memory.ts'
import { call } from './call.ts'
import { dependenciesForCall } from './call-dependencies.ts'
import { logIdOf } from './classify-response.ts'
import type { CallDependencies, ProxyDependencies } from './dependencies.ts'
import { preview, type RequestPreview } from './dry-run.ts'
import type { ActionRun, CallOutcome, StreamOutcome } from './outcome.ts'
import { type PageStep, pages } from './pages.ts'
import { redactFailure } from './redaction.ts'
import {
  type AccountAccess,
  type ActionRequest,
  isActionRequest,
  type PreviewRequest,
  type ProxyRequest,
  type StreamRequest,
} from './request.ts'
import { stream } from './stream.ts'

/** Calls third-party APIs as their definitions describe them. Between calls it holds nothing but the memory for large answers. */
export interface ApiProxy {
  /** One call; of a list, one page. See `call`. */
  call(plan: Plan, account: AccountAccess, request: ProxyRequest): Promise<CallOutcome>
  /** A named or reserved action, step by step. See `runAction`. */
  runAction(plan: Plan, account: AccountAccess, request: ActionRequest): Promise<ActionRun>
  /** A whole list, page by page, resumable. See `pages`. */
  pages(
    plan: Plan,
    account: AccountAccess,
    request: ProxyRequest,
    state?: JsonObject | null,
  ): AsyncGenerator<PageStep, void, void>
  /** One streamed call: raw and binary bodies in both directions. See `stream`. */
  stream(plan: Plan, account: AccountAccess, request: StreamRequest): Promise<StreamOutcome>
  /** Dry run: the request that a call would send, secrets masked. See `preview`. */
  preview(plan: Plan, account: AccountAccess, request: PreviewRequest): Promise<RequestPreview>
}

/** Creates the proxy. */
export function createProxy({ sealer = createSealer(), ...ports }: ProxyDependencies): ApiProxy {
  const memory = new AnswerMemory()
  const open = (plan: Plan, account: AccountAccess) => {
    const reservation = memory.forCall(account.environmentId ?? '')
    const deps = { ...ports, sealer, reserveAnswerBytes: reservation.reserve }
    return { own: dependenciesForCall(deps, plan, account), reservation }
  }
  /** Redacts the failures of a call: they may quote a redirect, a body, a value of a template. */
  async function redacted<Result>(
    plan: Plan,
    account: AccountAccess,
    work: (own: CallDependencies) => Promise<Result>,
  ): Promise<Result> {
    const { own, reservation } = open(plan, account)
    try {
      return await work(own)
    } catch (error) {
      throw redactFailure(own, error)
    } finally {
      reservation.release()
    }
  }

  return {
    call: (plan, account, request) =>
      redacted(plan, account, async (own) => {
        const outcome = isActionRequest(request)
          ? await callAction(own, plan, account, request)
          : await call(own, plan, account, request)
        return { ...outcome, ...logIdOf(own) }
      }),
    async *pages(plan, account, request, state) {
      const { own, reservation } = open(plan, account)
      const steps = isActionRequest(request)
        ? actionPages(own, plan, account, request)
        : pages(own, plan, account, request, state)
      try {
        for await (const step of steps) {
          yield { ...step, ...logIdOf(own) }
          reservation.release()
        }
      } catch (error) {
        throw redactFailure(own, error)
      } finally {
        reservation.release()
      }
    },
    runAction: (plan, account, request) => redacted(plan, account, (own) => runAction(own, plan, account, request)),
    stream: (plan, account, request) =>
      redacted(plan, account, async (own) => ({ ...(await stream(own, plan, account, request)), ...logIdOf(own) })),
    preview: (plan, account, request) => redacted(plan, account, (own) => preview(own, plan, account, request)),
  }
}
