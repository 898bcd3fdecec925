// A text as numbers: one for each character that occurs in it.
import { torch } from 'tensorfx'

export class Characters {
  /** @param {string} text */
  constructor(text) {
    this.alphabet = [...new Set(text)].sort()
    this.numbers = new Map(this.alphabet.map((character, i) => [character, i]))
  }

  /** The numbers of the characters, int64. */
  encode(text) {
    return torch.tensor(
      [...text].map((character) => {
        const number = this.numbers.get(character)
        if (number === undefined) throw new Error(`the character '${character}' does not occur in the training text`)
        return number
      }),
      { dtype: 'int64' },
    )
  }

  decode(numbers) {
    return numbers.map((number) => this.alphabet[number]).join('')
  }
}

/** `count` pieces of the encoded text, from random places: the characters, and those that follow them, each [count, length]. */
export function batch(data, count, length) {
  const starts = torch.randint(0, data.numel - length, [count, 1])
  const at = starts.add(torch.arange(length + 1, { dtype: 'int64' }))
  const pieces = data.take(at)
  return [pieces.narrow(1, 0, length), pieces.narrow(1, 1, length)]
}
