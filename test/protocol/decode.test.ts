// Decoders of data from outside, and JSON that is measured before it is parsed.
import { describe, expect, it, test } from 'vitest'
import { ArgumentError } from 'tensorfx'
import { boolean, decode, integer, list, mapOf, name, number, object, oneOf, optional, record, string } from '../../src/protocol/decode.ts'
import type { Decoder } from '../../src/protocol/decode.ts'
import { parseJson } from '../../src/protocol/jsonText.ts'

const read = <T>(decoder: Decoder<T>, value: unknown): T => decode('read', decoder, value)
const PERSON = object({ name, age: optional(integer(0, 150)), tags: list(oneOf(['a', 'b']), 2), more: optional(record(boolean)) })

describe('decoders', () => {
  it('return what they read, objects without a prototype', () => {
    const person = read(PERSON, { name: 'Ann', tags: ['b', 'a'], more: { x: true }, unknown: 1 })
    expect({ ...person }).toEqual({ name: 'Ann', age: undefined, tags: ['b', 'a'], more: { x: true } })
    expect(Object.getPrototypeOf(person)).toBeNull()
    expect(read(mapOf(number), { toString: 1, a: 2 })).toEqual(new Map([['toString', 1], ['a', 2]])) // prettier-ignore
    expect([read(string(), 'x'), read(number, NaN), read(oneOf([1, null]), null)]).toEqual(['x', NaN, null])
  })

  test.each<[unknown, string]>([
    [3, 'the data must be an object, got 3'],
    [null, 'the data must be an object, got null'],
    [[], 'the data must be an object, got an array of length 0'],
    [new Map(), 'the data must be an object, got a Map'],
    [{}, 'name must be a string, got nothing'],
    [{ name: 'x', tags: [], age: -1 }, 'age must be an integer from 0 to 150, got -1'],
    [{ name: 'x', tags: [], age: 0.5 }, 'age must be an integer from 0 to 150, got 0.5'],
    [{ name: 'x', tags: [], age: '1' }, "age must be an integer from 0 to 150, got '1'"],
    [{ name: 'x', tags: ['a', 'c'] }, "tags[1] must be one of a, b, got 'c'"],
    [{ name: 'x', tags: ['a', 'a', 'a'] }, 'tags must be an array of at most 2 items, got an array of length 3'],
    [{ name: 'x', tags: new Array(2) }, 'tags[0] must be one of a, b, got nothing'],
    [{ name: 'x', tags: [], more: { 'a-b': 1 } }, 'more["a-b"] must be true or false, got 1'],
    [{ name: 'x'.repeat(10_001), tags: [] }, 'name must be at most 10000 characters long'],
    [JSON.parse('{"name":"x","tags":[],"__proto__":{}}'), "the data has the key '__proto__'"],
    [{ name: 'x', tags: [], more: JSON.parse('{"__proto__":true}') as unknown }, "more has the key '__proto__'"],
  ])('name the place of what is wrong: %j', (value, why) => {
    expect(() => read(PERSON, value)).toThrow(`read: ${why}`)
    expect(() => read(PERSON, value)).toThrow(ArgumentError)
  })

  it('read own properties only', () => {
    expect(() => read(object({ toString: name }), {})).toThrow('toString must be a string, got nothing')
    expect(() => read(PERSON, Object.create({ name: 'x', tags: [] }))).toThrow('must be an object')
  })

  it('stop before a value is too deep', () => {
    const deep: Decoder<unknown> = (value, place) => (Array.isArray(value) ? list(deep)(value, place) : value)
    let value: unknown = 1
    for (let i = 0; i < 199; i++) value = [value]
    expect(() => read(deep, value)).not.toThrow()
    for (let i = 0; i < 2; i++) value = [value]
    expect(() => read(deep, value)).toThrow('read: the data are nested more than 200 deep')
  })
})

describe('parseJson', () => {
  const parse = (text: string): unknown => parseJson('read', 'the text', text)

  it('reads what JSON.parse reads', () => {
    for (const text of [
      '1',
      '"a"',
      'null',
      '{}',
      '[]',
      '{"a":[1,{"b":"c\\"}{"}],"d":"[[["}',
      '{"a":{"a":{"a":1}},"b":{"a":1}}',
      ' { "a" : "\\u0062" } ',
      '[{"a":1},{"a":1}]',
    ])
      expect(parse(text)).toEqual(JSON.parse(text))
  })

  test.each([
    ['{', 'the text is not JSON'],
    ['', 'the text is not JSON'],
    ['{"a"', 'the text is not JSON'],
    ['"', 'the text is not JSON'],
    ['"\\', 'the text is not JSON'],
    [']', 'the text is not JSON'],
    ['{"a":1,"a":2}', "the text has the key 'a' twice in one object"],
    ['{"a":1,"\\u0061":2}', "the text has the key 'a' twice in one object"],
    ['{"x":{"a":1},"b":[{"c":1,"d":2,"c":3}]}', "the text has the key 'c' twice in one object"],
    [`{${Array.from({ length: 30 }, (_, i) => `"k${i}":0`).join()},"k3" : 1}`, "the text has the key 'k3' twice in one object"],
    ['['.repeat(201), 'the text is nested more than 200 deep'],
    [`[${'{},'.repeat(600_000)}{}]`, 'the text has too many arrays and objects'],
  ])('refuses %.40s', (text, why) => {
    expect(() => parse(text)).toThrow(`read: ${why}`)
    expect(() => parse(text)).toThrow(ArgumentError)
  })

  it('refuses a text with more keys than its length allows', () => {
    const keys = Array.from({ length: 1_100_000 }, (_, i) => `"${i.toString(36)}":0`).join()
    expect(() => parse(`{${keys}}`)).not.toThrow()
    const dense = Array.from({ length: 400_000 }, () => '{"":0,"a":0,"b":0,"c":0,"d":0}').join()
    expect(() => parse(`[${dense}]`)).toThrow('the text has too many keys')
  }, 120_000)
})
