import { describe, expect, it } from 'vitest'
import { listInputPaths } from '../../src/expressions/index.ts'

describe('the paths of the input that an expression reads', () => {
  it.each<[string, string | undefined]>([
    ['name', 'name'],
    ['properties.email', 'properties.email'],
    ['$.properties.email & $$.a.b', 'properties.email, a.b'],
    ['a ?: b', 'a, b'],
    ['"x" & $string(id)', 'id'],
    ['emails[0].address', 'emails.address'],
    ['emails[type = "work"].address', 'emails'],
    ['emails[type = $$.kind].address', 'emails, kind'],
    ['items.{"id": id, "of": $$.owner.id}', 'items, owner.id'],
    ['$.{"id": id}', 'id'],
    ['$map(tags, function($t) { $t.name })', 'tags'],
    ['$map(tags, function($t) { $t.name & suffix })', 'tags, suffix'],
    ['tags.name ~> $join(", ")', 'tags.name'],
    ['$lookup($, "Work mail")', 'Work mail'],
    ['$lookup($$, "Work mail")', 'Work mail'],
    ['$lookup(properties, key)', 'properties, key'],
    ['$ctx.zone & $query.a', ''],
    ['items.*', 'items'],
    ['($x := a; $x.b)', 'a'],
    ['[a, {"k": b}]', 'a, b'],
    ['status in ["a", "b"]', 'status'],
    ['$', undefined],
    ['$string($)', undefined],
    ['$keys($$)', undefined],
    ['*', undefined],
    ['**.id', undefined],
    ['$uppercase()', undefined],
    ['a@$x.b', undefined],
    ['a.%.b', undefined],
    ['$each(function($v) { $v })', undefined],
    ['a b', undefined],
  ])('%s', (text, expected) => {
    expect(
      listInputPaths(text)
        ?.map((path) => path.join('.'))
        .join(', '),
    ).toBe(expected)
  })
})
