/**
 * The connect page: the pages, in a browser, on which a customer connects an account.
 *
 * Lives here: routes, markup, style, script, texts and headers of the page. Never here: what a step does (`link-sessions/`), or a
 * statement of a session.
 */

export { logoCleaner } from './maintenance.ts'
export { connectPageRoutes } from './routes.ts'
