import type { FormField, FormOption } from '../../../engine/formats/index.ts'
import type { Json } from '../../../foundation/json/index.ts'
import { type Html, html } from '../html.ts'
import type { Texts } from '../texts.ts'
import { externalLink } from './layout.ts'

/** What a form shows in a field beside its description. */
export interface FieldState {
  /** Of the field's JSON type; absent: its initial value. Ignored for secrets. */
  readonly value: Json | undefined
  /** The problem of the value that was submitted, for the customer. */
  readonly problem: string | undefined
  /** It is a secret that was sent before, and has to be entered again. */
  readonly isCleared?: boolean
}

/** Prefix of the names of inputs, which keeps names of definitions apart from those of the page. */
export const INPUT_PREFIX = 'f.'

/** Largest file that the script reads into a field, kB; the server's limit for a value is smaller or equal. */
const FILE_KILOBYTES_MAX = 16

/** The id of a field's input, the target of links in the error summary. */
export function inputId(name: string): string {
  return `f-${name}`
}

/** One field: label, help, input, problem. A field that depends on another has the condition as data for the script. */
export function renderField(texts: Texts, field: FormField, state: FieldState): Html {
  const visible = conditionOf(field)
  const content = field.type === 'checkbox' ? checkbox(texts, field, state) : labelled(texts, field, state)
  return field.type === 'multi_select'
    ? html`<fieldset class="field"${visible}${describedBy(field, state)}>${content}</fieldset>\n`
    : html`<div class="field"${visible}>${content}</div>\n`
}

/** The condition under which a field is shown, for the script. */
export function conditionOf({ visibleWhen: condition }: FormField): Html | false {
  return (
    condition !== undefined &&
    html` data-visible-field="${INPUT_PREFIX}${condition.field}" data-visible-values="${JSON.stringify(condition.equals.map(String))}"`
  )
}

/** The text for a violation of a field, in words for the person who fills in the form. */
export function violationText(texts: Texts, field: FormField, rule: string, description: string): string {
  if (rule === 'string.pattern' && field.patternMessage !== undefined) return field.patternMessage
  const isChoice = field.type === 'single_select' || field.type === 'multi_select'
  if (rule === 'required' && isChoice) return texts.text('violation.required.choice')
  if (rule === 'required' && field.type === 'checkbox') return texts.text('violation.required.checkbox')
  const key = `violation.${rule}`
  const { min = '', max = '' } = field
  return texts.has(key) ? texts.text(key, { min, max }) : texts.text('violation.unusable', { description })
}

function labelled(texts: Texts, field: FormField, state: FieldState): readonly HtmlPart[] {
  const optional = field.isRequired ? false : html` <span class="optional">(${texts.text('form.optional')})</span>`
  const label =
    field.type === 'multi_select'
      ? html`<legend>${field.label}${optional}</legend>`
      : html`<label for="${inputId(field.name)}">${field.label}${optional}</label>`
  const cleared = state.isCleared === true && html`<p class="help">${texts.text('form.kept')}</p>`
  return [label, help(texts, field), cleared, input(texts, field, state), problem(field, state)]
}

type HtmlPart = Html | false

function help(texts: Texts, field: FormField): HtmlPart {
  const guide = externalLink(texts, field.documentationLink, texts.text('form.guide'))
  const text = field.helpText !== undefined && html`${field.helpText}${guide && html` `}`
  return (
    (text !== false || guide !== false) && html`<p class="help" id="${inputId(field.name)}-help">${text}${guide}</p>`
  )
}

function problem(field: FormField, { problem: text }: FieldState): HtmlPart {
  return text !== undefined && html`<p class="problem" id="${inputId(field.name)}-problem">${text}</p>`
}

function input(texts: Texts, field: FormField, state: FieldState): Html {
  switch (field.type) {
    case 'single_select':
      return select(texts, field, state)
    case 'multi_select':
      return checkboxes(field, state)
    case 'textarea':
      return html`<textarea class="input" rows="5"${attributes(field, state)}>\n${shownValue(field, state)}</textarea>`
    case 'file':
      return file(texts, field, state)
    default:
      return affixed(texts, field, state)
  }
}

/** Inputs of one line, between prefix and suffix, with a button that reveals a password. */
function affixed(texts: Texts, field: FormField, state: FieldState): Html {
  const { prefix, suffix } = field
  const isPassword = field.type === 'password'
  const type = isPassword ? 'password' : (INPUT_TYPES[field.format ?? ''] ?? 'text')
  const line = html`<input class="input" type="${type}"${inputMode(field)}${attributes(field, state)} value="${shownValue(field, state)}">`
  if (!isPassword && prefix === undefined && suffix === undefined) return line
  const reveal =
    isPassword &&
    html`<button class="reveal" type="button" hidden data-reveal="${inputId(field.name)}" data-conceal="${texts.text('form.conceal')}"><span>${texts.text('form.reveal')}</span><span class="visually-hidden"> ${field.label}</span></button>`
  return html`<div class="affixed">${affix(prefix)}${line}${affix(suffix)}${reveal}</div>`
}

const INPUT_TYPES: Readonly<Record<string, string>> = { email: 'email', url: 'url', tel: 'tel', date: 'date' }

/** A field of type number keeps what was typed, so that the server can say what is wrong with it. */
function inputMode({ type, format }: FormField): HtmlPart {
  return (type === 'number' || format === 'number') && html` inputmode="decimal"`
}

function affix(text: string | undefined): HtmlPart {
  return text !== undefined && html`<span class="affix" dir="ltr">${text}</span>`
}

function select(texts: Texts, field: FormField, state: FieldState): Html {
  const value = currentValue(field, state)
  const isChosen = field.options.some((option) => option.value === value)
  const empty =
    (!field.isRequired || !isChosen) &&
    html`<option value="">${field.placeholder ?? texts.text('form.choose')}</option>`
  const options = field.options.map(
    (option) =>
      html`<option value="${option.value}"${option.value === value && html` selected`}>${optionText(option)}</option>`,
  )
  return html`<select class="input"${attributes(field, state)}>${empty}${options}</select>`
}

function optionText({ label, subText }: FormOption): string {
  return subText === undefined ? label : `${label} – ${subText}`
}

function checkboxes(field: FormField, state: FieldState): Html {
  const value = currentValue(field, state)
  const chosen = Array.isArray(value) ? value : []
  const options = field.options.map((option, index) => {
    // The error summary links to the first one.
    const id = index === 0 ? inputId(field.name) : `${inputId(field.name)}-${index}`
    return html`<div class="check"><input type="checkbox" id="${id}" name="${INPUT_PREFIX}${field.name}" value="${option.value}"${chosen.includes(option.value) && html` checked`}><label for="${id}">${optionText(option)}</label></div>\n`
  })
  return html`<div class="options">${options}</div>`
}

function checkbox(texts: Texts, field: FormField, state: FieldState): readonly HtmlPart[] {
  const id = inputId(field.name)
  const isChecked = currentValue(field, state) === true
  return [
    html`<div class="check"><input type="checkbox" id="${id}" name="${INPUT_PREFIX}${field.name}" value="true"${isChecked && html` checked`}${invalid(state)}${describedBy(field, state)}><label for="${id}">${field.label}</label></div>`,
    help(texts, field),
    problem(field, state),
  ]
}

/** The content is pasted; with script it can also be read from a file. */
function file(texts: Texts, field: FormField, state: FieldState): Html {
  const id = inputId(field.name)
  const tooLarge = texts.text('form.fileTooLarge', { size: FILE_KILOBYTES_MAX })
  const accept = field.accept.length > 0 && html` accept="${field.accept.join(',')}"`
  return html`<textarea class="input" rows="5"${attributes(field, state)}>\n${shownValue(field, state)}</textarea>
<div class="tools" hidden data-file="${id}" data-bytes-max="${FILE_KILOBYTES_MAX * 1024}" data-too-large="${tooLarge}"><label>${texts.text('form.file')} <input type="file"${accept}></label><span role="status"></span></div>`
}

/** What browsers may fill in (WCAG 2.2, 1.3.5): facts about the person, never a credential. */
const PURPOSES: Readonly<Record<string, string>> = { email: 'email', tel: 'tel' }

function attributes(field: FormField, state: FieldState): readonly HtmlPart[] {
  return [
    html` id="${inputId(field.name)}" name="${INPUT_PREFIX}${field.name}"`,
    html` autocomplete="${PURPOSES[field.format ?? ''] ?? 'off'}" autocapitalize="none" spellcheck="false"`,
    field.isRequired && html` required`,
    field.placeholder !== undefined && field.type !== 'single_select' && html` placeholder="${field.placeholder}"`,
    invalid(state),
    describedBy(field, state),
  ]
}

function invalid({ problem: text }: FieldState): HtmlPart {
  return text !== undefined && html` aria-invalid="true"`
}

function describedBy(field: FormField, state: FieldState): HtmlPart {
  const ids = [
    state.problem !== undefined && `${inputId(field.name)}-problem`,
    (field.helpText !== undefined || field.documentationLink !== undefined) && `${inputId(field.name)}-help`,
  ].filter((id) => id !== false)
  return ids.length > 0 && html` aria-describedby="${ids.join(' ')}"`
}

function shownValue(field: FormField, state: FieldState): string {
  const value = field.isSecret ? undefined : currentValue(field, state)
  return value === undefined || value === null || typeof value === 'object' ? '' : String(value)
}

function currentValue(field: FormField, { value }: FieldState): Json | undefined {
  return value ?? field.initialValue
}
