import { foldText, type Violation } from '../../foundation/base/index.ts'
import type { JsonObject } from '../../foundation/json/index.ts'
import { createConnectForm, findTermsToAccept, getLinkSession, type LinkPageStep } from '../../platform/links/index.ts'
import { destinationOf, outcomeOf } from './destination.ts'
import { alertOf, errorAlert, type PageVisit, sendStep, stepPath } from './page-request.ts'
import { progressOf, revisionOf } from './progress.ts'
import { sendRedirect } from './send-page.ts'
import { settingsContent } from './settings-step.ts'
import { categoryName, textAbout } from './texts.ts'
import { chooseIntegrationPage, chooseMethodPage } from './views/choose.ts'
import { donePage, failedPage } from './views/end.ts'
import { consentPage, credentialsPage } from './views/form.ts'
import type { PageContent } from './views/layout.ts'
import { progressPage, waitingPage } from './views/progress.ts'
import type { TermsModel } from './views/terms.ts'

/** Longest search; the input has the same limit. */
const QUERY_LENGTH_MAX = 256

/** What the customer has just submitted, where the page shows it again. */
export interface Submitted {
  readonly values: JsonObject
  readonly violations: readonly Violation[]
  /** Address of the terms of service whose box was checked. */
  readonly acceptedTerms: string | undefined
  readonly needsTerms: boolean
}

/** Shows a step, or the session's own step when the session has passed or not reached the asked one. */
export async function showStep(visit: PageVisit, step: string): Promise<void> {
  const { session } = visit
  if (!isOpenStep(visit, step)) return sendRedirect(visit.exchange, stepPath(session, session.step))
  const content = await stepContent(visit, step)
  if (content === undefined) return sendRedirect(visit.exchange, stepPath(session, 'integration'))
  sendStep(visit, 200, content)
}

/** Shows the form with what was entered and what is wrong with it. */
export async function showRejectedForm(visit: PageVisit, submitted: Submitted): Promise<void> {
  const content = await formContent(visit, submitted)
  if (content === undefined) return sendRedirect(visit.exchange, stepPath(visit.session, visit.session.step))
  sendStep(visit, 422, content)
}

/** Whether a step can be shown now: the session's own, and those before it while nothing is under way. */
function isOpenStep({ session, choices, choice }: PageVisit, step: string): step is LinkPageStep {
  if (step === session.step) return true
  const isUndecided = ['opened', 'form', 'redirected', 'pending'].includes(session.status)
  if (!isUndecided) return false
  switch (step) {
    case 'integration':
      return choices.length > 1
    case 'method':
      return choice !== undefined && choice.methods.length > 1
    case 'form':
      return session.authenticationMethod !== null
    default:
      return false
  }
}

/** The page of a step; undefined when what it is about is no longer offered. */
async function stepContent(visit: PageVisit, step: LinkPageStep): Promise<PageContent | undefined> {
  switch (step) {
    case 'integration':
      return integrationContent(visit)
    case 'method':
      return methodContent(visit)
    case 'form':
      return await formContent(visit)
    case 'consent':
      return await waitingContent(visit)
    case 'progress':
      return await progressContent(visit)
    case 'settings':
      return await settingsContent(visit)
    case 'done':
      return endContent(visit)
  }
}

function integrationContent({ frame, exchange, session, choices, logoPathOf }: PageVisit): PageContent {
  return chooseIntegrationPage(
    { ...frame, integration: undefined },
    {
      action: stepPath(session, 'integration'),
      choices: choices.map((choice) => {
        const { label: name, text, tags, searchText } = choice.description
        const category = categoryName(frame.texts, choice.category)
        return {
          value: choice.environmentIntegrationId,
          name,
          logoPath: logoPathOf(choice),
          text,
          category,
          tags,
          isBeta: choice.isBeta,
          searchText: `${searchText} ${foldText(category)}`,
        }
      }),
      query: (exchange.parameter('q') ?? '').slice(0, QUERY_LENGTH_MAX),
      cancelPath: stepPath(session, 'cancel'),
    },
  )
}

function methodContent({ frame, session, choice, choices }: PageVisit): PageContent | undefined {
  if (choice === undefined) return undefined
  return chooseMethodPage(frame, {
    action: stepPath(session, 'method'),
    methods: choice.methods.map(({ credential, label, hasConsent }) => ({
      value: credential,
      label: label ?? frame.texts.text(hasConsent ? 'method.oauth.label' : 'method.fields.label'),
      hasConsent,
    })),
    backPath: choices.length > 1 ? stepPath(session, 'integration') : undefined,
    cancelPath: stepPath(session, 'cancel'),
  })
}

async function formContent(visit: PageVisit, submitted?: Submitted): Promise<PageContent | undefined> {
  const { deps, frame, session } = visit
  const form = await createConnectForm(deps.links, session)
  if (form === undefined) return undefined
  const { fields } = form
  const common = {
    action: stepPath(session, 'form'),
    alert: submitted === undefined ? alertOf(visit) : undefined,
    terms: await termsModel(visit, submitted),
    isSandbox: session.isSandbox,
    isBeta: form.choice.isBeta,
    cancelPath: stepPath(session, 'cancel'),
    backPath: backFromForm(visit),
  }
  const { hasConsent } = form.method
  if (hasConsent && fields.every(({ isHidden }) => isHidden))
    return consentPage(frame, { ...common, scopes: form.scopes })
  return credentialsPage(frame, {
    ...common,
    fields,
    values: submitted?.values ?? form.values,
    violations: submitted?.violations ?? [],
    hasConsent,
    isReconnect: session.isReconnect,
  })
}

async function termsModel(
  { deps, session }: PageVisit,
  submitted: Submitted | undefined,
): Promise<TermsModel | undefined> {
  const url = await findTermsToAccept(deps.links, session)
  if (url === undefined) return undefined
  return { url, isChecked: submitted?.acceptedTerms === url, isMissing: submitted?.needsTerms === true }
}

function backFromForm({ session, choices, choice }: PageVisit): string | undefined {
  if ((choice?.methods.length ?? 0) > 1) return stepPath(session, 'method')
  return choices.length > 1 ? stepPath(session, 'integration') : undefined
}

/** The page while the customer is at the third party. @param popupPath opens the consent page in a popup of a frame */
export async function waitingContent(visit: PageVisit, popupPath?: string): Promise<PageContent | undefined> {
  const { deps, frame, session } = visit
  const form = await createConnectForm(deps.links, session)
  if (form === undefined) return undefined
  return waitingPage(frame, {
    action: stepPath(session, 'consent'),
    statusPath: stepPath(session, 'status'),
    revision: revisionOf(session),
    popupPath,
    callbackUri: form.callbackUri,
    isPending: session.status === 'pending',
    alert: alertOf(visit),
    backPath: stepPath(session, 'form'),
    cancelPath: stepPath(session, 'cancel'),
  })
}

async function progressContent({ deps, frame, session, choice }: PageVisit): Promise<PageContent> {
  const { transitions } = await getLinkSession(deps.links, session, session.id)
  const method = choice?.methods.find((each) => each.credential === session.credential)
  return progressPage(frame, {
    steps: progressOf(session, transitions, { now: new Date(), hasConsent: method?.hasConsent === true }),
    statusPath: stepPath(session, 'status'),
    revision: revisionOf(session),
    // Once the account is stored, its activation decides how the session ends.
    cancelPath: session.status === 'exchanging' ? stepPath(session, 'cancel') : undefined,
  })
}

function endContent(visit: PageVisit): PageContent {
  const { frame, session } = visit
  const destination = destinationOf(visit)
  const data = { outcome: JSON.stringify(outcomeOf(session)) }
  if (session.status === 'completed') return donePage(frame, { isReconnect: session.isReconnect, destination, data })
  const code = session.error?.code ?? (session.status === 'expired' ? 'expired_token' : 'cancelled')
  const isCancelled = code === 'cancelled'
  // What the customer did needs no message of the third party.
  const details = isCancelled ? '' : (session.error?.message ?? '')
  const alert = errorAlert(frame, code, details)
  const advice =
    isCancelled && session.integratedAccountId !== null
      ? textAbout(frame.texts, 'error.cancelled.advice.account', frame.integration?.name)
      : alert.advice
  return failedPage(frame, { alert: { ...alert, advice }, isCancelled, destination, data })
}
