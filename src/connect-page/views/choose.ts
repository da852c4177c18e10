import { type Html, html } from '../html.ts'
import { brandedText, logoOf, type NamedLogo, type PageContent, type PageFrame } from './layout.ts'

/** A service in the list. */
export interface ServiceChoice extends NamedLogo {
  /** Value that the form submits. */
  readonly value: string
}

/** Above this many services a search box is shown, and the list scrolls. */
const SEARCH_FROM = 8

/** The list of services. Works without script: each entry is a button; the search is added by the script. */
export function chooseIntegrationPage(
  frame: PageFrame,
  { action, choices, cancelPath }: { action: string; choices: readonly ServiceChoice[]; cancelPath: string },
): PageContent {
  const { texts } = frame
  const isMany = choices.length > SEARCH_FROM
  const intro =
    choices.length === 0
      ? texts.text('integration.none')
      : brandedText(frame, { plain: 'integration.intro', branded: 'integration.intro.brand' })
  const items = choices.map(
    (choice) =>
      html`<li><button class="choice" name="integration" value="${choice.value}" data-label="${choice.name}">${logoOf(choice)}<span class="text"><span class="label">${choice.name}</span></span></button></li>\n`,
  )
  return {
    title: texts.text('integration.title'),
    cancelPath,
    data: { step: 'integration' },
    body: html`<p class="intro">${intro}</p>
<form class="body" method="post" action="${action}">
${isMany && searchBox(texts)}<ul class="choices${isMany && ' many'}" id="choices">
${items}</ul>
</form>`,
  }
}

/** Hidden without script, which alone can filter the list. */
function searchBox(texts: PageFrame['texts']): Html {
  return html`<div class="field search" hidden data-search-empty="${texts.text('integration.empty')}" data-search-one="${texts.text('integration.found.one')}" data-search-other="${texts.text('integration.found.other')}">
<label for="search">${texts.text('integration.search')}</label>
<input class="input" type="search" id="search" autocomplete="off" spellcheck="false" aria-controls="choices" aria-describedby="found">
<p class="tools" id="found" role="status"></p>
</div>
`
}

/** A way to connect. */
export interface MethodChoice {
  readonly value: string
  readonly label: string
  /** The customer signs in at the third party instead of entering credentials. */
  readonly hasConsent: boolean
}

/** The ways to connect, the recommended one first. */
export function chooseMethodPage(
  frame: PageFrame,
  input: { action: string; methods: readonly MethodChoice[]; backPath: string | undefined; cancelPath: string },
): PageContent {
  const { texts } = frame
  const integration = frame.integration?.name ?? ''
  const items = input.methods.map(
    ({ value, label, hasConsent }) =>
      html`<li><button class="choice" name="method" value="${value}"><span class="text"><span class="label">${label}</span><span class="hint">${texts.text(hasConsent ? 'method.oauth' : 'method.fields', { integration })}</span></span></button></li>\n`,
  )
  return {
    title: texts.text('method.title'),
    backPath: input.backPath,
    cancelPath: input.cancelPath,
    data: { step: 'method' },
    body: html`<p class="intro">${texts.text('method.intro', { integration })}</p>
<form class="body" method="post" action="${input.action}">
<ul class="choices">
${items}</ul>
</form>
${backAction(texts, input.backPath)}`,
  }
}

/** A link to the previous step, on a line of its own. */
function backAction(texts: PageFrame['texts'], backPath: string | undefined): Html | false {
  return (
    backPath !== undefined &&
    html`<p class="actions"><a class="button secondary" href="${backPath}">${texts.text('page.back')}</a></p>`
  )
}
