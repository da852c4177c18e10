import { searchWords } from '../../../foundation/base/index.ts'
import { type Html, html } from '../html.ts'
import type { Texts } from '../texts.ts'
import { brandedText, logoOf, type NamedLogo, type PageContent, type PageFrame } from './layout.ts'

/** A service in the list. */
interface ServiceChoice extends NamedLogo {
  /** Value that the form submits. */
  readonly value: string
  /** What it is for; empty without. */
  readonly text: string
  /** Category in the language of the page; empty without. */
  readonly category: string
  readonly tags: readonly string[]
  readonly isBeta: boolean
  /** What the search looks at, as `foldText` gives it. */
  readonly searchText: string
}

/** The services, and what was searched for. */
interface ServiceList {
  readonly action: string
  readonly choices: readonly ServiceChoice[]
  /** Empty: all are shown. */
  readonly query: string
  readonly cancelPath: string
}

/** Above this many services a search is shown, and the list scrolls. */
const SEARCH_FROM = 6
/** Tags that are shown of a service; the search finds all. */
const TAGS_SHOWN_MAX = 4

/** The list of services. Works without script: each entry is a button, the search a form; the script filters while one types. */
export function chooseIntegrationPage(frame: PageFrame, list: ServiceList): PageContent {
  const { texts } = frame
  const { choices, query } = list
  const words = searchWords(query)
  const isFound = ({ searchText }: ServiceChoice) => words.every((word) => searchText.includes(word))
  const intro =
    choices.length === 0
      ? texts.text('integration.none')
      : brandedText(frame, { plain: 'integration.intro', branded: 'integration.intro.brand' })
  const isMany = choices.length > SEARCH_FROM
  const hasBeta = choices.some(({ isBeta }) => isBeta)
  return {
    title: texts.text('integration.title'),
    cancelPath: list.cancelPath,
    data: { step: 'integration' },
    body: html`<p class="intro">${intro}</p>
<div class="body">
${isMany && searchForm(texts, list, choices.filter(isFound).length)}<form method="post" action="${list.action}">
<ul class="choices${isMany && ' many'}" id="choices">
${choices.map((choice) => serviceItem(texts, choice, isFound(choice)))}</ul>
</form>
${hasBeta && html`<p class="note">${texts.text('integration.beta.meaning')}</p>\n`}</div>`,
  }
}

function serviceItem(texts: Texts, choice: ServiceChoice, isFound: boolean): Html {
  const { value, name, text, category, tags, isBeta, searchText } = choice
  const hint = text === '' ? category : text
  return html`<li${!isFound && html` hidden`}><button class="choice" name="integration" value="${value}" data-search="${searchText}">${logoOf(choice)}<span class="text"><span class="label">${name}${isBeta && html` <span class="badge">${texts.text('integration.beta')}</span>`}</span>${hint !== '' && html` <span class="hint">${hint}</span>`}${tags.length > 0 && html` <span class="tags">${tags.slice(0, TAGS_SHOWN_MAX).map((tag) => html`<span class="tag">${tag}</span> `)}</span>`}</span></button></li>\n`
}

/** A GET of the same page; the script makes it unnecessary, and hides the button. */
function searchForm(texts: Texts, { action, query }: ServiceList, count: number): Html {
  const found =
    query === ''
      ? ''
      : count === 0
        ? texts.text('integration.empty', { query })
        : texts.plural('integration.found', count)
  return html`<form class="field search" role="search" method="get" action="${action}" data-search-empty="${texts.text('integration.empty')}" data-search-one="${texts.text('integration.found.one')}" data-search-other="${texts.text('integration.found.other')}">
<label for="search">${texts.text('integration.search')}</label>
<div class="search-row"><input class="input" type="search" id="search" name="q" value="${query}" maxlength="256" autocomplete="off" spellcheck="false" aria-controls="choices" aria-describedby="found"><button class="button secondary" type="submit">${texts.text('integration.search.submit')}</button></div>
<p class="tools" id="found" role="status">${found}</p>
</form>
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
