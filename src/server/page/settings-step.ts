import type { FormField } from '../../engine/formats/index.ts'
import type { Violation } from '../../foundation/base/index.ts'
import { isJsonObject, type Json, type JsonObject } from '../../foundation/json/index.ts'
import { findSettingsForm, loadSettingsOptions, submitSettings } from '../../platform/links/index.ts'
import { fieldValues, tryParseJson } from './form-body.ts'
import { alertOf, type PageVisit, sendStep, stepPath } from './page-request.ts'
import { sendJson, sendRedirect } from './send-page.ts'
import type { PageContent } from './views/layout.ts'
import { LOAD_INTENT, type LoadedOptions, settingsPage } from './views/settings.ts'

/** What was entered in the settings, to show it again. */
interface EnteredSettings {
  readonly values: JsonObject
  readonly violations: readonly Violation[]
  /** Options that a browser without script asked for. */
  readonly loaded: ReadonlyMap<string, LoadedOptions>
}

/** The page of the settings; undefined when the session asks for none. */
export async function settingsContent(visit: PageVisit, entered?: EnteredSettings): Promise<PageContent | undefined> {
  const { deps, session, frame } = visit
  const form = await findSettingsForm(deps.links, session)
  if (form === undefined) return undefined
  return settingsPage(frame, {
    action: stepPath(session, 'settings'),
    optionsPath: stepPath(session, 'options'),
    fields: form.fields,
    values: entered?.values ?? form.values,
    violations: entered?.violations ?? [],
    loaded: entered?.loaded ?? new Map(),
    alert: entered === undefined ? alertOf(visit) : undefined,
    cancelPath: stepPath(session, 'cancel'),
    backPath: undefined,
  })
}

/** Takes the form of the settings: its values, or the request of a browser without script for options. */
export async function takeSettings(visit: PageVisit, body: URLSearchParams): Promise<void> {
  const { deps, ref, session, exchange } = visit
  const form = await findSettingsForm(deps.links, session)
  if (form === undefined) return sendRedirect(exchange, stepPath(session, session.step))
  const values = settingsValues(body, form.fields)
  if (body.get(LOAD_INTENT.name) === LOAD_INTENT.value) {
    const loaded = await loadAll(visit, form.fields, values)
    return await showSettings(visit, 200, { values, violations: [], loaded })
  }
  const result = await submitSettings(deps.links, ref, values)
  if (result.kind === 'invalid')
    return await showSettings(visit, 422, { values, violations: result.violations, loaded: new Map() })
  const next = result.kind === 'unknown' ? session : result.session
  sendRedirect(exchange, stepPath(next, next.step))
}

/** `POST …/options`: a page of options for the script. */
export async function serveOptions(visit: PageVisit, body: URLSearchParams): Promise<void> {
  const { deps, ref, session, exchange, frame } = visit
  const form = await findSettingsForm(deps.links, session)
  const field = body.get('field') ?? ''
  if (form?.fields.every(({ name, remote }) => name !== field || remote === undefined) !== false)
    return await sendJson(exchange, 404, { error: frame.texts.text('settings.failed') })
  const result = await loadSettingsOptions(deps.links, ref, {
    field,
    search: body.get('search') ?? '',
    values: settingsValues(body, form.fields),
    ...(body.has('cursor') ? { cursor: body.get('cursor') ?? '' } : {}),
  })
  switch (result.kind) {
    case 'page':
      return await sendJson(exchange, 200, {
        options: result.options.map(({ value, label, subText }) => ({ value, label, sub_text: subText ?? null })),
        next_cursor: result.nextCursor ?? null,
      })
    case 'disabled':
      return await sendJson(exchange, 200, { disabled: [...result.missing] })
    case 'error':
    case 'unknown':
      return await sendJson(exchange, 200, { error: frame.texts.text('settings.failed') })
  }
}

async function showSettings(visit: PageVisit, status: number, entered: EnteredSettings): Promise<void> {
  const content = await settingsContent(visit, entered)
  if (content === undefined) return sendRedirect(visit.exchange, stepPath(visit.session, visit.session.step))
  sendStep(visit, status, content)
}

/** The first page of options of every field, one after the other: the third party is asked once at a time. */
async function loadAll(
  { deps, ref, frame }: PageVisit,
  fields: readonly FormField[],
  values: JsonObject,
): Promise<ReadonlyMap<string, LoadedOptions>> {
  const loaded = new Map<string, LoadedOptions>()
  for (const { name, remote } of fields) {
    if (remote === undefined) continue
    const result = await loadSettingsOptions(deps.links, ref, { field: name, values })
    if (result.kind === 'page') loaded.set(name, { kind: 'options', options: result.options })
    else if (result.kind === 'disabled') {
      const labels = result.missing.map((missing) => fields.find((field) => field.name === missing)?.label ?? missing)
      const text = remote.disabledText ?? frame.texts.text('settings.parent', { field: labels.join(', ') })
      loaded.set(name, { kind: 'message', text })
    } else loaded.set(name, { kind: 'message', text: frame.texts.text('settings.failed') })
  }
  return loaded
}

/** Values by field name; of selects with remote options `{value, label}`, or a list of them. */
function settingsValues(body: URLSearchParams, fields: readonly FormField[]): JsonObject {
  const values = fieldValues(body, fields)
  const remote = fields.filter((field) => field.remote !== undefined && Object.hasOwn(values, field.name))
  const read = remote.map(({ name }) => [name, readChoices(values[name] ?? null)] as const)
  return { ...values, ...Object.fromEntries(read) }
}

function readChoices(value: Json): Json {
  return Array.isArray(value) ? value.map(readChoice) : readChoice(value)
}

/** The value of an option's input is JSON; any other text is an id without a label. */
function readChoice(text: Json): Json {
  if (typeof text !== 'string' || !text.startsWith('{')) return text
  const choice = tryParseJson(text)
  if (!isJsonObject(choice) || typeof choice.value !== 'string') return text
  return { value: choice.value, label: typeof choice.label === 'string' ? choice.label : choice.value }
}
