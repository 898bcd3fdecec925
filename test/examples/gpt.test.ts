// The character GPT of examples/gpt: it learns, writes, and its cache computes what reading the whole text computes.
import { expect, test } from 'vitest'
import { compile, nn, noGrad, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { example } from './run.ts'

interface GPT extends nn.Module {
  forward(tokens: Tensor): Tensor
  next(token: Tensor, position: Tensor): Tensor
}
type Config = Readonly<Record<'vocabulary' | 'context' | 'width' | 'heads' | 'layers', number>>
const { GPT } = (await import(example('gpt/model.mjs'))) as { readonly GPT: new (config: Config) => GPT }

test('reading one character at a time through the cache gives the scores of the whole text, eager and in one compiled graph', () => {
  torch.manualSeed(3)
  const model = new GPT({ vocabulary: 11, context: 9, width: 16, heads: 2, layers: 2 })
  const tokens = torch.randint(0, 11, [1, 9])
  const whole = noGrad(() => model(tokens)).squeeze(0)
  const compiled = compile((token: Tensor, position: Tensor) => model.next(token, position))
  for (const next of [(token: Tensor, position: Tensor) => model.next(token, position), compiled]) {
    for (let i = 0; i < 9; i++) {
      const position = torch.tensor([i], { dtype: 'int64' })
      const scores = noGrad(() => next(tokens.select(0, 0).narrow(0, i, 1), position))
      expect(scores.sub(whole.select(0, i)).abs().max().item(), `position ${i}`).toBeLessThan(1e-5)
    }
  }
  expect(compiled.graphs()).toHaveLength(1)
})

test('a character that the training text lacks is refused by name', async () => {
  const { Characters } = (await import(example('gpt/text.mjs'))) as {
    readonly Characters: new (text: string) => { encode(text: string): Tensor; decode(numbers: readonly number[]): string }
  }
  const characters = new Characters('to be')
  expect(characters.decode((characters.encode('bet').toArray() as number[]).map(Number))).toBe('bet')
  expect(() => characters.encode('bat')).toThrow("the character 'a' does not occur")
})
