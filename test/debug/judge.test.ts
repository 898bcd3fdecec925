// What an error is compared by: its innermost cause.
import { describe as suite, expect, it } from 'vitest'
import { ArgumentError } from 'tensorfx'
import { describe, signatureOf } from 'tensorfx/debug'

const cyclic = (): Error => {
  const outer = new Error('outer 1')
  const inner = new TypeError("inner 'x' 2", { cause: outer })
  outer.cause = inner
  return outer
}

suite('an error whose causes form a circle', () => {
  it('has the signature of the last error before it repeats', () => {
    expect(signatureOf(cyclic())).toBe('TypeError||inner _ #')
    const own = new Error('own')
    own.cause = own
    expect(signatureOf(own)).toBe('Error||own')
  })

  it('is described once', () => {
    expect(describe(cyclic())).toBe("Error: outer 1\ncaused by TypeError: inner 'x' 2")
  })
})

suite('an error', () => {
  it('has the signature of its innermost cause that is an error', () => {
    const inner = new ArgumentError("sin: 'x' has 3 dims")
    expect(signatureOf(new Error('compile failed', { cause: inner }))).toBe('ArgumentError|TFX_ARGUMENT|sin: _ has # dims')
    expect(signatureOf(new Error('outer', { cause: 'a text' }))).toBe('Error||outer')
    expect(describe(new Error('outer', { cause: 'a text' }))).toBe('Error: outer\ncaused by a text')
  })

  it('has the signature of others that differ in numbers, names, lists and quoted parts', () => {
    const signature = (message: string): string => signatureOf(new RangeError(message))
    expect(signature(`buf12 has "no" 'x' of \`y\` in [1, 2, 3] at 3.5\nsecond line`)).toBe('RangeError||# has _ _ of _ in [] at #.#')
    expect(signature('')).toBe('RangeError||')
  })

  it('with a chain of a hundred thousand causes is described in a hundred lines', () => {
    let error = new Error('0')
    for (let i = 1; i < 100_000; i++) error = new Error(String(i), { cause: error })
    expect(describe(error).split('\n')).toHaveLength(100)
  })

  it('may be any value, one that cannot be converted to text included', () => {
    const odd = Object.create(null) as object
    expect(signatureOf('text')).toBe('text')
    expect(signatureOf(odd)).toBe('an object')
    expect(describe(new Error('outer', { cause: odd }))).toBe('Error: outer\ncaused by an object')
  })
})
