import { describe, expect, test } from 'vitest'
import { environmentRoots, readsEnvironment } from '../../../../src/engine/expressions/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'

const VARIABLES = {
  REGION: 'eu',
  API_SECRET: 'canary-1',
  mail: { host: 'smtp.example', password: 'canary-2' },
  servers: [{ url: 'https://a.example', access_key: 'canary-3' }],
  tokens: { first: 'canary-4' },
}
const PUBLIC = { REGION: 'eu', mail: { host: 'smtp.example' }, servers: [{ url: 'https://a.example' }] }

describe('the environment variables that an expression may read', () => {
  test.each<[string, JsonObject | undefined]>([
    ['body.error', undefined],
    ['$', undefined],
    ['$keys($)', undefined],
    ['headers["x-environment"]', undefined],
    ['"env.API_SECRET"', undefined],
    ['env.', undefined],
    ['env', PUBLIC],
    ['$keys(env)', PUBLIC],
    ['environment_variables.*', PUBLIC],
    ['env.$string()', PUBLIC],
    ['$keys($.env)', PUBLIC],
    ['$eval("env.API_" & "SECRET") & env.REGION', PUBLIC],
    ['env.API_SECRET', { ...PUBLIC, API_SECRET: 'canary-1' }],
    ['environment_variables.API_SECRET = body.secret', { ...PUBLIC, API_SECRET: 'canary-1' }],
    ['($v := env; $v.API_SECRET)', { ...PUBLIC, API_SECRET: 'canary-1' }],
    ['env.(REGION & API_SECRET)', { ...PUBLIC, API_SECRET: 'canary-1' }],
    ['$lookup(env, "API_SECRET")', { ...PUBLIC, API_SECRET: 'canary-1' }],
    ['$hmac("sha256", $$.env.API_SECRET, body)', { ...PUBLIC, API_SECRET: 'canary-1' }],
    ['env.mail.password', { ...PUBLIC, mail: VARIABLES.mail }],
    ['env.servers[0].access_key', { ...PUBLIC, servers: VARIABLES.servers }],
    ['env.tokens', { ...PUBLIC, tokens: VARIABLES.tokens }],
  ])('%s', (expression, env) => {
    const roots = environmentRoots(expression, VARIABLES)
    expect(roots).toEqual(env === undefined ? {} : { env, environment_variables: env })
    expect(readsEnvironment(expression)).toBe(env !== undefined)
  })
})
