// Sums as sequences of characters: '27+5=', then the answer, lowest digit first, the order in which a sum is computed: '27+5=23 '. The network reads a character and
// must say the next one. What it could only guess, the digits of the question, has the target that losses leave out.
import { torch } from 'tensorfx'

export const ALPHABET = '0123456789+= '
/** crossEntropy leaves this target out. */
const IGNORED = -100

export const encode = (text) => [...text].map((character) => ALPHABET.indexOf(character))

/** The whole text of a sum, and of a question without its answer. */
export const question = (a, b) => `${a}+${b}=`
export const solved = (a, b) => `${question(a, b)}${[...String(a + b)].reverse().join('')} `

/** `count` sums of numbers below 10 ** digits, as inputs and targets [count, length]. */
export function sums(count, digits) {
  const length = 3 * digits + 3
  const pairs = torch.randint(0, 10 ** digits, [count, 2]).toArray()
  const [inputs, targets] = [[], []]
  for (const [a, b] of pairs) {
    const text = solved(a, b)
    const from = question(a, b).length
    const numbers = encode(text.padEnd(length + 1))
    inputs.push(numbers.slice(0, length))
    targets.push(Array.from({ length }, (_, i) => (i + 1 >= from && i + 1 < text.length ? numbers[i + 1] : IGNORED)))
  }
  return [torch.tensor(inputs, { dtype: 'int64' }), torch.tensor(targets, { dtype: 'int64' })]
}
