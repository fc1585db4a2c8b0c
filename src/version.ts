/** Which Patchbay this is. package.json is where it is written down. */
import { version } from "../package.json";

export const VERSION: string = version;
