// The LSTM of examples/lstm: it learns, and its state carries what it has read.
import { expect, test } from 'vitest'
import { nn, noGrad, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { example } from './run.ts'

type State = readonly Tensor[]
interface Adder extends nn.Module {
  forward(characters: Tensor, state?: State): readonly [Tensor, State]
}
const { Adder, answer } = (await import(example('lstm/model.mjs'))) as {
  readonly Adder: new (hidden: number) => Adder
  readonly answer: (model: (characters: Tensor, state?: State) => readonly [Tensor, State], question: string) => string
}
const { ALPHABET, encode, sums } = (await import(example('lstm/data.mjs'))) as {
  readonly ALPHABET: string
  readonly encode: (text: string) => number[]
  readonly sums: (count: number, digits: number) => readonly [Tensor, Tensor]
}

test('the targets are the digits of the sum, lowest first, and a space; all else is left out', () => {
  torch.manualSeed(5)
  const [inputs, targets] = sums(50, 2)
  const texts = (inputs.toArray() as number[][]).map((row) => row.map((n) => ALPHABET[Number(n)]).join(''))
  for (const [i, row] of (targets.toArray() as number[][]).entries()) {
    const [a, b] = (texts[i] ?? '').split(/[+=]/).map(Number)
    const counted = row.map(Number).filter((n) => n >= 0)
    const said = counted.map((n) => ALPHABET[n]).join('')
    expect(said).toBe(`${[...String((a ?? NaN) + (b ?? NaN))].reverse().join('')} `)
    expect(Number(row[(texts[i] ?? '').indexOf('=')])).toBe(counted[0])
  }
})

test('reading with the state gives the scores of reading at once', () => {
  torch.manualSeed(6)
  const model = new Adder(8)
  const read = (text: string, state?: State): readonly [Tensor, State] => noGrad(() => model(torch.tensor([encode(text)], { dtype: 'int64' }), state))
  const [whole] = read('12+34=')
  const [, state] = read('12+3')
  const [rest] = read('4=', state)
  expect(
    rest
      .sub(whole.narrow(1, 4, 2))
      .abs()
      .max()
      .item(),
  ).toBeLessThan(1e-6)
})

test('an answer is what the model says up to the space, turned around', () => {
  const replies = ['6', '4', ' ']
  let calls = 0
  const says = (): readonly [Tensor, State] => {
    const scores = torch.nn.functional.oneHot(torch.tensor([[ALPHABET.indexOf(replies[calls++] ?? '')]], { dtype: 'int64' }), ALPHABET.length)
    return [scores, []]
  }
  expect(answer(says, '12+34=')).toBe('46')
  expect(calls).toBe(3)
})
