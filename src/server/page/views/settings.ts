import type { FormField, FormOption, RemoteOptions } from '../../../engine/formats/index.ts'
import type { Json } from '../../../foundation/json/index.ts'
import { isJsonObject } from '../../../foundation/json/index.ts'
import { type Html, html } from '../html.ts'
import type { Texts } from '../texts.ts'
import { conditionOf, INPUT_PREFIX, inputId, renderField, violationText } from './fields.ts'
import { type FormModel, problemsOf, submitActions } from './form.ts'
import type { PageContent, PageFrame } from './layout.ts'

/** Options of a field that were read for a browser without script. */
export type LoadedOptions =
  | { readonly kind: 'options'; readonly options: readonly FormOption[] }
  /** Texts to show instead. */
  | { readonly kind: 'message'; readonly text: string }

/** The form after the connection works. */
export interface SettingsModel extends FormModel {
  /** Address at which the script reads options. */
  readonly optionsPath: string
  /** By field name; empty until a browser without script asks for them. */
  readonly loaded: ReadonlyMap<string, LoadedOptions>
}

/** Name of the button, and its value, that asks for options instead of submitting. */
export const LOAD_INTENT = { name: 'intent', value: 'load' } as const

/** The form that the definition asks to fill in once the account is connected. */
export function settingsPage(frame: PageFrame, model: SettingsModel): PageContent {
  const { texts } = frame
  const { fields, values, violations } = model
  const shown = fields.filter(({ isHidden }) => !isHidden)
  const items = shown.map((field) => {
    const violation = violations.find((each) => each.field === field.name)
    const problem = violation && violationText(texts, field, violation.rule, violation.description)
    return field.remote === undefined
      ? renderField(texts, field, { value: values[field.name], problem })
      : remoteField(texts, field, field.remote, { model, problem })
  })
  const load =
    shown.some(({ remote }) => remote !== undefined) &&
    html`<noscript><p class="actions"><button class="button secondary" type="submit" name="${LOAD_INTENT.name}" value="${LOAD_INTENT.value}" formnovalidate>${texts.text('settings.apply')}</button></p></noscript>\n`
  return {
    title: texts.text('settings.title'),
    cancelPath: undefined,
    data: { step: 'settings' },
    body: html`<p class="intro">${texts.text('settings.intro')}</p>
${problemsOf(frame, model)}<form class="body" method="post" action="${model.action}" novalidate data-guard>
<div class="stack">${items}</div>
${load}${submitActions(texts, texts.text('settings.submit'), undefined)}
</form>`,
  }
}

/** A choice among options of the third party: a list with search, which the script fills, and which keeps what is chosen. */
function remoteField(
  texts: Texts,
  field: FormField,
  remote: RemoteOptions,
  { model, problem }: { model: SettingsModel; problem: string | undefined },
): Html {
  const id = inputId(field.name)
  const chosen = chosenOptions(model.values[field.name])
  const loaded = model.loaded.get(field.name)
  const others =
    loaded?.kind === 'options' ? loaded.options.filter(({ value }) => !chosen.some((one) => one.value === value)) : []
  const inputs = [
    ...chosen.map((option) => ({ option, isChosen: true })),
    ...others.map((option) => ({ option, isChosen: false })),
  ]
  const describedBy = [
    problem !== undefined && `${id}-problem`,
    field.helpText !== undefined && `${id}-help`,
    `${id}-state`,
  ]
    .filter((each) => each !== false)
    .join(' ')
  const message = loaded?.kind === 'message' ? loaded.text : ''
  return html`<fieldset class="field" id="${id}" tabindex="-1" aria-describedby="${describedBy}" data-options="${field.name}" data-path="${model.optionsPath}" data-type="${field.type === 'multi_select' ? 'checkbox' : 'radio'}"${remote.dependsOn.length > 0 && html` data-depends="${JSON.stringify(remote.dependsOn.map((name) => `${INPUT_PREFIX}${name}`))}"`}${conditionOf(field)}${dataTexts(texts, model, remote)}>
<legend>${field.label}${!field.isRequired && html` <span class="optional">(${texts.text('form.optional')})</span>`}</legend>
${field.helpText !== undefined && html`<p class="help" id="${id}-help">${field.helpText}</p>\n`}<input class="input" type="search" hidden data-search aria-label="${texts.text('settings.search')}: ${field.label}" placeholder="${texts.text('settings.search')}" autocomplete="off" spellcheck="false" aria-controls="${id}-list">
<div class="options" id="${id}-list"${inputs.length === 0 && html` hidden`}>${!field.isRequired && field.type === 'single_select' && noneInput(texts, field, chosen.length === 0)}${inputs.map(({ option, isChosen }, index) => optionInput(field, option, { isChosen, id: `${id}-${index}` }))}</div>
<div class="tools"><span role="status" id="${id}-state">${message}</span><button class="plain" type="button" hidden data-more>${texts.text('settings.more')}</button><button class="plain" type="button" hidden data-retry>${texts.text('page.retry')}</button></div>
${problem !== undefined && html`<p class="problem" id="${id}-problem">${problem}</p>\n`}</fieldset>\n`
}

function optionInput(field: FormField, option: FormOption, { isChosen, id }: { isChosen: boolean; id: string }): Html {
  const type = field.type === 'multi_select' ? 'checkbox' : 'radio'
  return html`<div class="check"><input type="${type}" id="${id}" name="${INPUT_PREFIX}${field.name}" value="${optionValue(option)}"${isChosen && html` checked`}><label for="${id}">${option.label}${option.subText !== undefined && html`<span class="hint">${option.subText}</span>`}</label></div>\n`
}

/** A radio button cannot be cleared, so an optional choice has one for none. */
function noneInput(texts: Texts, field: FormField, isChosen: boolean): Html {
  const id = `${inputId(field.name)}-none`
  return html`<div class="check" data-none><input type="radio" id="${id}" name="${INPUT_PREFIX}${field.name}" value=""${isChosen && html` checked`}><label for="${id}">${texts.text('settings.none')}</label></div>\n`
}

/** The value of an option's input: id and label, so that both are stored. */
function optionValue({ value, label }: Pick<FormOption, 'value' | 'label'>): string {
  return JSON.stringify({ value, label })
}

/** Texts that the script shows; it knows none of its own. */
function dataTexts(texts: Texts, { fields }: SettingsModel, remote: RemoteOptions): Html {
  const labels = remote.dependsOn.map((name) => fields.find((field) => field.name === name)?.label ?? name)
  const parent = remote.disabledText ?? texts.text('settings.parent', { field: labels.join(', ') })
  const empty = remote.emptyText ?? texts.text('settings.empty')
  return html` data-parent="${parent}" data-empty="${empty}" data-no-match="${texts.text('settings.noMatch')}" data-failed="${texts.text('settings.failed')}" data-loading="${texts.text('page.loading')}"`
}

/** The present choice: `{value, label}`, a list of these, or ids alone. */
function chosenOptions(value: Json | undefined): readonly FormOption[] {
  const items = value === undefined || value === null || value === '' ? [] : Array.isArray(value) ? value : [value]
  return items.map((item: Json) => {
    if (!isJsonObject(item)) return { value: String(item), label: String(item) }
    return { value: String(item.value), label: String(item.label ?? item.value) }
  })
}
