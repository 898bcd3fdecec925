// What the doc comment of an operator has to say.

/** The classes of errors that a doc comment names. */
export const thrownIn = (text: string): string[] =>
  [...text.matchAll(/^@throws (\w+)(?:, (\w+Error))?/gm)].flatMap(([, ...names]) => names.filter((name) => name !== undefined))

/** What is missing in a doc comment, without its stars; one line each. */
export function missingInDoc(text: string): string[] {
  const [description = ''] = text.split(/^@/m)
  const [summary = '', ...rest] = description.split('\n\n').map((paragraph) => paragraph.replaceAll('\n', ' '))
  const missing: string[] = []
  if (!/^\S.{10,}/.test(summary)) missing.push('a paragraph that says what it computes')
  if (!/PyTorch's `(torch|F|Tensor|aten)\.[\w.]+`|PyTorch has no such operator/.test(summary))
    missing.push("its name in PyTorch: PyTorch's `torch.…`")
  if (!/^Shapes?: \S.+/m.test(rest.join('\n'))) missing.push('a paragraph `Shape: …`')
  if (thrownIn(text).length === 0) missing.push('a line `@throws …`')
  if (!/^@example /m.test(text) && !/^@example$/m.test(text)) missing.push('an `@example`')
  return missing
}
