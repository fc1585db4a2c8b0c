/** VitePress's own theme in the reader's own fonts. */
import theme from "vitepress/theme-without-fonts";
import "./site.css";

export default theme;
