// Which class an image belongs to, by its folder or by its name; and which images are kept for validation.

const IMAGE = /\.(png|jpe?g|webp|gif|bmp|avif)$/i

/** The class of a file: its folder, or its name up to a digit, a space, a dash or a dot (cat-01.png is a cat). */
export function labelOf(path) {
  const parts = path.split('/')
  if (parts.length > 1) return parts.at(-2)
  return /^[^\d\s_.-]+/.exec(parts[0])?.[0].toLowerCase() ?? 'image'
}

/** The images among files, with their classes in the order of their names: `{ labels, samples: [{ file, label }] }`. */
export function samplesOf(files) {
  const images = files.filter(({ path }) => IMAGE.test(path)).sort((a, b) => (a.path < b.path ? -1 : 1))
  const labels = [...new Set(images.map(({ path }) => labelOf(path)))].sort()
  return { labels, samples: images.map(({ file, path }) => ({ file, label: labels.indexOf(labelOf(path)) })) }
}

/** Every fourth image of a class is for validation, if the class has that many. */
export function divided(samples) {
  const seen = new Map()
  const [training, validation] = [[], []]
  for (const sample of samples) {
    const count = (seen.get(sample.label) ?? 0) + 1
    seen.set(sample.label, count)
    if (count % 4 === 0) validation.push(sample)
    else training.push(sample)
  }
  return { training, validation }
}

/** All files of what was dropped, those in folders too: `[{ file, path }]`. */
export async function droppedFiles(items) {
  const read = async (entry, path) => {
    if (entry.isFile) return [{ file: await new Promise((resolve, reject) => entry.file(resolve, reject)), path: path + entry.name }]
    const reader = entry.createReader()
    const files = []
    // A reader gives a part of its entries at a time.
    for (;;) {
      const part = await new Promise((resolve, reject) => reader.readEntries(resolve, reject))
      if (part.length === 0) return files
      for (const child of part) files.push(...(await read(child, `${path}${entry.name}/`)))
    }
  }
  const entries = [...items].filter(({ kind }) => kind === 'file').map((item) => item.webkitGetAsEntry() ?? item.getAsFile())
  const all = []
  for (const entry of entries) all.push(...(entry instanceof File ? [{ file: entry, path: entry.name }] : await read(entry, '')))
  return all
}
