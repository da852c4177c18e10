import { isUuid } from '../../foundation/base/index.ts'
import {
  cancelByBrowser,
  chooseIntegration,
  chooseMethod,
  confirmIdentityChange,
  createConnectForm,
  createHopTicket,
  type LinkStepResult,
  reopenChoice,
  submitForm,
} from '../../platform/links/index.ts'
import type { HttpExchange } from '../api/http/routes.ts'
import type { ConnectPageDeps } from './dependencies.ts'
import { fieldValues, readForm } from './form-body.ts'
import { linkUrl } from './html.ts'
import { continueVisit, openVisit, type PageVisit, sendStep, stepPath } from './page-request.ts'
import { revisionOf } from './progress.ts'
import { isSameOrigin } from './same-origin.ts'
import { publicPath, sendJson, sendRedirect, sendRequestError } from './send-page.ts'
import { type Submitted, showRejectedForm, showStep, waitingContent } from './session-pages.ts'
import { serveOptions, takeSettings } from './settings-step.ts'
import { hopPage } from './views/form.ts'
import { TERMS_INPUT } from './views/terms.ts'

/** `/connect/{id}` and everything below it. */
export async function serveSession(deps: ConnectPageDeps, exchange: HttpExchange): Promise<void> {
  const [id = '', step = '', ...rest] = exchange.path.split('/').slice(2)
  if (!isUuid(id) || rest.length > 0) return sendRequestError(exchange, 404, 'request.not_found')
  const isPost = exchange.request.method === 'POST'
  if (isPost && !isSameOrigin(exchange, deps.links.publicUrl()))
    return sendRequestError(exchange, 403, 'request.cross_site')
  const visit = await openVisit(deps, exchange, id)
  if (visit === undefined) return sendRequestError(exchange, 404, 'request.no_session')
  if (isPost) return await takeStep(visit, step)
  if (step === '') return sendRedirect(exchange, stepPath(visit.session, visit.session.step))
  if (step === 'status') return await sendStatus(visit)
  await showStep(visit, step)
}

/** What the script polls: whether there is anything new, and the step to show. */
async function sendStatus({ exchange, session }: PageVisit): Promise<void> {
  const { status, step } = session
  await sendJson(exchange, 200, {
    status,
    step,
    path: publicPath(exchange, stepPath(session, step)),
    revision: revisionOf(session),
  })
}

/** Carries out what a form of the page asks for. A form that was sent twice finds the session where the first one left it. */
async function takeStep(visit: PageVisit, step: string): Promise<void> {
  const { deps, exchange, ref, session } = visit
  const form = await readForm(exchange)
  switch (step) {
    case 'integration': {
      if (session.status === 'redirected' || session.status === 'pending') await reopenChoice(deps.links, ref)
      return await respond(visit, await chooseIntegration(deps.links, ref, form.get('integration') ?? ''))
    }
    case 'method': {
      const method = visit.choice?.methods.find((each) => each.credential === form.get('method'))
      if (method === undefined) return sendRedirect(exchange, stepPath(session, session.step))
      return await respond(visit, await chooseMethod(deps.links, ref, method.credential))
    }
    case 'form':
      return await submit(visit, form)
    case 'consent':
      return await resumeConsent(visit)
    case 'settings':
      return await takeSettings(visit, form)
    case 'options':
      return await serveOptions(visit, form)
    case 'identity':
      return await respond(visit, await confirmIdentityChange(deps.links, ref))
    case 'cancel':
      return await respond(visit, await cancelByBrowser(deps.links, ref))
    default:
      return sendRequestError(exchange, 404, 'request.not_found')
  }
}

/** Goes to the third party again with what was entered before; to the form when a secret has to be entered again. */
async function resumeConsent(visit: PageVisit): Promise<void> {
  const { deps, exchange, ref, session } = visit
  const result = await submitForm(deps.links, ref, session.formValues)
  if (result.kind === 'invalid') return sendRedirect(exchange, stepPath(session, 'form'))
  await respond(visit, result)
}

async function submit(visit: PageVisit, form: URLSearchParams): Promise<void> {
  const { deps, ref, session, exchange } = visit
  const connectForm = await createConnectForm(deps.links, session)
  if (connectForm === undefined) return sendRedirect(exchange, stepPath(session, session.step))
  const values = fieldValues(form, connectForm.fields)
  const acceptedTerms = form.get(TERMS_INPUT) ?? undefined
  await respond(visit, await submitForm(deps.links, ref, values, acceptedTerms), { values, acceptedTerms })
}

/** Sends the browser where a step has led. @param submitted to show it again */
async function respond(
  visit: PageVisit,
  result: LinkStepResult,
  submitted: Pick<Submitted, 'values' | 'acceptedTerms'> = { values: {}, acceptedTerms: undefined },
): Promise<void> {
  const { exchange } = visit
  switch (result.kind) {
    case 'unknown':
      return sendRequestError(exchange, 404, 'request.no_session')
    case 'progress':
      return sendRedirect(exchange, stepPath(result.session, result.session.step))
    case 'invalid':
      return await showRejectedForm(await continueVisit(visit, result.session), {
        ...submitted,
        violations: result.violations,
        needsTerms: result.needsTerms,
      })
    case 'redirect':
      return await leave(await continueVisit(visit, result.session), result.url)
  }
}

/** To the third party's consent page: in this window, or from a frame in a popup. */
async function leave(visit: PageVisit, url: string): Promise<void> {
  const { deps, ref, frame, mode, exchange, session } = visit
  // A definition says where the consent page is: only a web address becomes a link.
  if (linkUrl(url) === undefined) return sendRequestError(exchange, 400, 'error.provider_error')
  if (mode !== 'iframe') return sendStep(visit, 200, hopPage(frame, url))
  const ticket = await createHopTicket(deps.links, ref, url)
  const content = ticket === undefined ? undefined : await waitingContent(visit, `/connect/hop?ticket=${ticket}`)
  if (content === undefined) return sendRedirect(exchange, stepPath(session, session.step))
  sendStep(visit, 200, content)
}
