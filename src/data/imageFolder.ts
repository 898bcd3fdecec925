// Images in folders, one folder for each class.
import { ArgumentError, UnsupportedError } from '../errors/index.ts'
import { checkCount, checkOptions, checkString, isCallable, valueText } from '../protocol/index.ts'
import { Dataset, checkIndex } from './dataset.ts'

/** Options of {@link ImageFolder}. */
export interface ImageFolderOptions<T> {
  /** Makes the sample of an image from the bytes of its file. */
  readonly decode: (bytes: Uint8Array, path: string) => T | Promise<T>
  /** The ends of the names of images, in small letters. Default: those of torchvision, `.jpg`, `.png`, … */
  readonly extensions?: readonly string[]
}

const EXTENSIONS = ['.jpg', '.jpeg', '.png', '.ppm', '.bmp', '.pgm', '.tif', '.tiff', '.webp']

/** By code points, as Python sorts. */
const inOrder = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

/**
 * The images below a folder, whose folders are the classes: `get(i)` is `[decode(bytes, path), label]`. Classes and images are in the order of their names. torchvision's `ImageFolder`.
 *
 * tensorfx decodes no images: `decode` does, for example by the package sharp.
 *
 * @throws UnsupportedError where there is no file system, and without `decode`; ArgumentError for a folder without classes, and a class without images.
 * @example
 * // pets.mjs
 * export default () => new ImageFolder('pets/train', {
 *   async decode(bytes) {
 *     const { data } = await sharp(bytes).resize(224, 224).removeAlpha().raw().toBuffer({ resolveWithObject: true })
 *     return torch.tensor(data).view(224, 224, 3).permute(2, 0, 1).div(255)
 *   },
 * })
 */
export class ImageFolder<T> extends Dataset<[T, number]> {
  /** The names of the classes; a label is a position in it. */
  readonly classes: readonly string[]
  /** The path of each image, with its label. */
  readonly samples: readonly (readonly [path: string, label: number])[]
  readonly #decode: (bytes: Uint8Array, path: string) => T | Promise<T>
  readonly #fs: typeof import('node:fs')

  constructor(root: string, options: ImageFolderOptions<T>) {
    checkCount('ImageFolder', arguments, 2)
    super()
    checkString('ImageFolder', 'root', root)
    const fs = globalThis.process?.getBuiltinModule?.('node:fs')
    if (fs === undefined) throw new UnsupportedError('ImageFolder: there is no file system here. Make a dataset of the Blobs that the page has.')
    checkOptions('ImageFolder', options ?? {}, { decode: true, extensions: true })
    if (!isCallable(options?.decode))
      throw new UnsupportedError(
        `ImageFolder: tensorfx decodes no images; pass { decode: async (bytes, path) => … }, for example with the package sharp: sharp(bytes).raw().toBuffer({ resolveWithObject: true }). Got ${valueText(options?.decode)}.`,
      )
    this.#fs = fs
    this.#decode = options.decode
    if (!fs.existsSync(root)) throw new ArgumentError(`ImageFolder: there is no folder ${valueText(root)}.`)
    this.classes = fs
      .readdirSync(root, { withFileTypes: true })
      .filter((entry) => entry.isDirectory() || (entry.isSymbolicLink() && fs.statSync(`${root}/${entry.name}`).isDirectory()))
      .map(({ name }) => name)
      .sort(inOrder)
    if (this.classes.length === 0)
      throw new ArgumentError(`ImageFolder: ${valueText(root)} has no folders, which are the classes; put the images of each class into one.`)
    const extensions = options.extensions ?? EXTENSIONS
    this.samples = this.classes.flatMap((name, label) => {
      const paths = imagesBelow(fs, `${root}/${name}`, extensions)
      if (paths.length === 0)
        throw new ArgumentError(`ImageFolder: the class '${name}' has no images (${extensions.join(', ')}); remove its folder, or give 'extensions'.`)
      return paths.map((path) => [path, label] as const)
    })
  }

  get length(): number {
    return this.samples.length
  }

  async get(index: number): Promise<[T, number]> {
    checkCount('ImageFolder.get', arguments, 1)
    const sample = this.samples[checkIndex('ImageFolder.get', index, this.length)]
    const [path, label] = sample ?? ['', 0]
    const bytes = await this.#fs.promises.readFile(path)
    return [await this.#decode(bytes, path), label]
  }
}

/** The paths of images in a folder and those within it. */
function imagesBelow(fs: typeof import('node:fs'), folder: string, extensions: readonly string[]): string[] {
  return fs
    .readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => extensions.some((end) => name.toLowerCase().endsWith(end)))
    .map((name) => `${folder}/${name.replaceAll('\\', '/')}`)
    .filter((path) => fs.statSync(path).isFile())
    .sort(inOrder)
}
