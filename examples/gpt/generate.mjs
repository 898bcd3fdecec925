// Text from a GPT, one character at a time, through its cache. Each character is drawn from the softmax of the scores; a low temperature prefers the likely ones.
import { noGrad, torch } from 'tensorfx'

const number = (value) => torch.tensor([value], { dtype: 'int64' })

/** A draw from softmax(scores): the largest after noise of Gumbel's distribution was added. */
const draw = (scores) => scores.sub(torch.rand(scores.shape).log().neg().log()).argmax().item()

/** `next(token, position)` is the model's step, as it is or compiled. The text is the prompt and what follows it, `length` characters in all. */
export function generate(next, characters, prompt, length, { temperature = 0.8 } = {}) {
  return noGrad(() => {
    const text = characters.encode(prompt).toArray()
    for (let position = 0; position < length - 1; position++) {
      const scores = next(number(text[position]), number(position))
      if (position + 1 === text.length) text.push(draw(scores.div(temperature)))
    }
    return characters.decode(text)
  })
}
