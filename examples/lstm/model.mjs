// An LSTM that reads characters and says the next one.
import { nn, noGrad, torch } from 'tensorfx'
import { ALPHABET, encode } from './data.mjs'

export class Adder extends nn.Module {
  constructor(hidden) {
    super()
    this.embedding = new nn.Embedding(ALPHABET.length, 16)
    this.lstm = new nn.LSTM(16, hidden, { batchFirst: true })
    this.out = new nn.Linear(hidden, ALPHABET.length)
  }

  /** Characters [batch, length] to the scores of those that follow, and the state after the last; `state` is that from before the first. */
  forward(characters, state) {
    const [hidden, next] = this.lstm(this.embedding(characters), state)
    return [this.out(hidden), next]
  }
}

/** The model's answer to a question such as '27+5=', read forwards. It is fed with its own digits until it says a space. */
export function answer(model, question, limit = 8) {
  return noGrad(() => {
    let text = ''
    let [scores, state] = model(torch.tensor([encode(question)], { dtype: 'int64' }))
    while (text.length < limit) {
      const character = ALPHABET[scores.select(1, -1).argmax().item()]
      if (character === ' ') break
      text = character + text
      ;[scores, state] = model(torch.tensor([encode(character)], { dtype: 'int64' }), state)
    }
    return text
  })
}
